// A Go program: its main goroutine waits while another one, in a thread of its own, reads.
package main

import (
	"io"
	"os"
	"runtime"
)

func main() {
	done := make(chan []byte)
	go func() {
		runtime.LockOSThread()
		data, _ := io.ReadAll(os.Stdin)
		done <- data
	}()
	os.Stdout.Write(<-done)
}
