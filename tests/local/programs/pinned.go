// Draws and asks for the time as Go's own library does: by raw calls, in whichever thread.
package main

import (
	"crypto/rand"
	"fmt"
	"time"
)

func main() {
	drawn := make([]byte, 8)
	if _, err := rand.Read(drawn); err != nil {
		panic(err)
	}
	fmt.Printf("%x %d\n", drawn, time.Now().UnixNano())
}
