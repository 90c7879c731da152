// A Go program that uses the C library: it finds what the kernel says of the machine behind its
// environment, as Go's runtime does, and would not start without.
package main

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
)

func main() {
	C.free(C.malloc(8))
	data, err := os.ReadFile(os.Args[1])
	fmt.Print(string(data))
	if err != nil || len(os.Environ()) == 0 {
		os.Exit(1)
	}
}
