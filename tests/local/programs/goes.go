// A Go program: reads A, writes its bytes to B from another goroutine, and runs the rest as a
// command, many times at once.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- os.WriteFile(os.Args[2], data, 0o644) }()
	if err := <-done; err != nil {
		panic(err)
	}
	if len(os.Args) < 5 {
		return
	}
	times, _ := strconv.Atoi(os.Args[3])
	var all sync.WaitGroup
	for i := 0; i < times; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			out, err := exec.Command(os.Args[4], os.Args[5:]...).CombinedOutput()
			if err != nil || len(out) != 0 {
				fmt.Println(err, string(out))
				os.Exit(1)
			}
		}()
	}
	all.Wait()
}
