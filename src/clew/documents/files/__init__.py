"""The documents of files: their versions, checkouts, listings, and what recreating one takes. Any
package may import it."""
