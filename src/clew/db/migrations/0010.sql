-- Schema 10: one row holds all looks of a process at one time. `also` packs those after the first.

ALTER TABLE looked ADD COLUMN also {bytes};
