// Draws and asks for the time as Go's own library does: by raw calls.
package main

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"time"
)

// The clock and the random numbers are pinned per thread. Keep main on the first thread: the
// scheduler may otherwise move it to one that has read the clock more or less often.
func init() {
	runtime.LockOSThread()
}

func main() {
	drawn := make([]byte, 8)
	if _, err := rand.Read(drawn); err != nil {
		panic(err)
	}
	fmt.Printf("%x %d\n", drawn, time.Now().UnixNano())
}
