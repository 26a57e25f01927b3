// page.go PATH - whether the candidate of a `baton serve` on this host leads, without a call: prints
// the term, or 0. Term, deadline, term: the same term twice, and the clock below the deadline.
package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

func term(page []byte) int64 {
	word := func(at int) int64 { return atomic.LoadInt64((*int64)(unsafe.Pointer(&page[at]))) }
	term, deadline, again, now := word(40), word(48), word(40), syscall.Timespec{}
	_, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 7, uintptr(unsafe.Pointer(&now)), 0)
	if e != 0 || term != again || now.Nano() >= deadline { // 7: CLOCK_BOOTTIME
		return 0
	}
	return term
}

func main() {
	file, _ := os.Open(os.Args[1])
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	page, err := syscall.Mmap(int(file.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil || string(page[:8]) != "BATONPG\n" || string(boot) != fmt.Sprintf(
		"%x-%x-%x-%x-%x\n", page[16:20], page[20:22], page[22:24], page[24:26], page[26:32]) {
		panic(os.Args[1] + " is not a page of this boot")
	}
	clock := syscall.Stat_t{} // a container may have a time namespace of its own
	_ = syscall.Stat("/proc/self/ns/time", &clock)
	if *(*uint64)(unsafe.Pointer(&page[32])) != clock.Ino {
		panic(os.Args[1] + " counts by another clock")
	}
	fmt.Println(term(page))
}
