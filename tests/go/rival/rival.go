// Package rival is what the rivals of baton have in common: each is one candidate, in the words of
// somebody else's library, that is told what to do and tells what has become of it, line by line.
//
// On standard input: `resign`, `campaign`; its end ends the candidate. On standard output: what
// happened, when by CLOCK_BOOTTIME in nanoseconds, and more.
package rival

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Now is CLOCK_BOOTTIME, which all processes of one machine share.
func Now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		Die(err)
	}
	return now.Nano()
}

// Say writes one line: what has happened just now, and more about it.
func Say(what string, more ...any) {
	fmt.Printf("%s %d", what, Now())
	for _, one := range more {
		fmt.Printf(" %v", one)
	}
	fmt.Println()
}

// Commands are the lines of standard input; the channel is closed at its end.
func Commands() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			lines <- input.Text()
		}
	}()
	return lines
}

// Duration of an argument, or the end.
func Duration(text string) time.Duration {
	length, err := time.ParseDuration(text)
	if err != nil {
		Die(err)
	}
	return length
}

// Die says why, and ends the candidate.
func Die(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
