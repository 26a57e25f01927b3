package sidecar

// sidecar_test.go: the scenarios of the bindings (tests/bindings) that make sense beside a sidecar,
// with real ones, on a store in files.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	election = "night/report é"
	limit    = 60 * time.Second // for whatever happens in the end, on any load
)

// world is a store, in which sidecars take part.
type world struct {
	t      *testing.T
	folder string
}

func newWorld(t *testing.T) *world { return &world{t, t.TempDir()} }

func (w *world) socket(id string) string { return filepath.Join(w.folder, id+".sock") }

func (w *world) serve(id, lease string) *exec.Cmd {
	w.t.Helper()
	c := exec.Command(filepath.Join(filepath.Dir(os.Getenv("BATON_LIB")), "baton"), "serve",
		"--store=file:"+filepath.Join(w.folder, "store"), "--lease="+lease, "--id="+id,
		"--socket="+w.socket(id), "--page-dir="+filepath.Join(w.folder, id), "--retry=100ms",
		"--attach=require", election)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

func (w *world) client(id string) *Client { return New(w.socket(id)) }

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func (w *world) acquire(c *Client) *Lead {
	w.t.Helper()
	lead, err := c.Acquire(soon(w.t), election)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(lead.Close)
	return lead
}

func (w *world) resign(c *Client) {
	w.t.Helper()
	if err := c.order(soon(w.t), election, "resign?any=1", struct{}{}); err != nil {
		w.t.Fatal(err)
	}
}

// lost waits for the loss of a lead, and returns why.
func lost(t *testing.T, lead *Lead) string {
	t.Helper()
	select {
	case <-lead.Context().Done():
	case <-time.After(limit):
		t.Fatal("the loss was never told")
	}
	var loss *LostError
	if !errors.As(context.Cause(lead.Context()), &loss) || loss.Term != lead.Term() {
		t.Fatalf("the cause is %v", context.Cause(lead.Context()))
	}
	if lead.Leads() || lead.TimeLeft() != 0 {
		t.Fatal("it leads after the loss")
	}
	return loss.Reason
}

func next[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(limit):
		t.Fatalf("%s never came", what)
		panic("not reached")
	}
}

func TestElected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a", "3s")
	lead := w.acquire(w.client("a"))
	if lead.Term() != 1 || !lead.Leads() || lead.Context().Err() != nil {
		t.Fatalf("term %d, leads %v", lead.Term(), lead.Leads())
	}
	if left := lead.TimeLeft(); left <= 0 || left > 3*time.Second {
		t.Fatalf("%v are left", left)
	}
	time.Sleep(4 * time.Second) // renewed meanwhile
	if !lead.Leads() || lead.Context().Err() != nil {
		t.Fatal("the renewals were not heard")
	}
	lead.Close()
	lead.Close()
	if lead.Leads() {
		t.Fatal("it leads after its end")
	}
}

// The loss cancels the body; the leadership passes on only after the body has ended.
func TestHandsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a", "3s")
	a, b := w.client("a"), w.client("b")
	first := w.acquire(a)
	w.serve("b", "3s")
	entered := make(chan *Lead, 1)
	go func() {
		lead, err := b.Acquire(soon(t), election)
		if err == nil {
			entered <- lead
		}
	}()
	w.resign(a)
	if reason := lost(t, first); reason != "ordered" {
		t.Fatalf("the reason is %q", reason)
	}
	select {
	case <-entered:
		t.Fatal("another one leads while the body runs")
	case <-time.After(1500 * time.Millisecond):
	}
	first.Close()
	second := next(t, entered, "the next leader")
	defer second.Close()
	if second.Term() != 2 {
		t.Fatalf("term %d", second.Term())
	}
}

func TestRunReturnsAndRaises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a", "3s")
	failed := errors.New("the body failed")
	var terms []uint64
	err := w.client("a").Run(soon(t), election, func(_ context.Context, lead *Lead) error {
		terms = append(terms, lead.Term())
		if len(terms) < 2 {
			return nil // resigns, and contends again
		}
		return failed
	})
	if err != failed || len(terms) != 2 || terms[1] != 2 {
		t.Fatalf("%v in terms %v", err, terms)
	}
	err = w.client("a").Run(soon(t), election, func(context.Context, *Lead) error {
		return ErrDone
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(soon(t))
	err = w.client("a").Run(ctx, election, func(inner context.Context, lead *Lead) error {
		cancel()
		<-inner.Done()
		if !lead.Leads() {
			t.Error("the end of the context has closed the connection before the work ended")
		}
		return inner.Err()
	})
	if err != context.Canceled {
		t.Fatal(err)
	}
}

// A sidecar that stands still: the deadline ends the leadership all the same.
func TestFrozen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.serve("a", "1s")
	lead := w.acquire(w.client("a"))
	_ = server.Process.Signal(syscall.SIGSTOP)
	if reason := lost(t, lead); reason != "expired" {
		t.Fatalf("the reason is %q", reason)
	}
	_ = server.Process.Signal(syscall.SIGCONT)
}

// A sidecar that dies is a loss; Run goes on with the next one.
func TestSidecarDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.serve("a", "1s")
	c := w.client("a")
	retried := make(chan error, 100)
	c.OnRetry = func(err error) {
		select {
		case retried <- err:
		default:
		}
	}
	terms := make(chan uint64, 2)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(soon(t), election, func(ctx context.Context, lead *Lead) error {
			terms <- lead.Term()
			if lead.Term() > 1 {
				return ErrDone
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	next(t, terms, "the first term")
	_ = server.Process.Kill()
	_ = server.Wait()
	next(t, retried, "a retry")
	w.serve("a", "1s")
	if term := next(t, terms, "the next term"); term != 2 {
		t.Fatalf("term %d", term)
	}
	if err := next(t, ended, "the end"); err != nil {
		t.Fatal(err)
	}
}

// An application that is killed: the kernel closes its connection. The lease is longer than the
// limit of the test, so nobody has waited for it.
func TestApplicationDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a", "300s")
	application := exec.Command(os.Args[0], "-test.run=^TestApplication$")
	application.Env = append(os.Environ(), "BATON_TEST_SOCKET="+w.socket("a"))
	output, err := application.StdoutPipe()
	if err == nil {
		err = application.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = application.Wait() }()
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w.serve("b", "300s")
	_ = application.Process.Kill()
	if lead := w.acquire(w.client("b")); lead.Term() != 2 {
		t.Fatalf("term %d", lead.Term())
	}
}

// TestApplication is the program that TestApplicationDies kills.
func TestApplication(t *testing.T) {
	socket := os.Getenv("BATON_TEST_SOCKET")
	if socket == "" {
		t.Skip("it is started by TestApplicationDies")
	}
	lead, err := New(socket).Acquire(soon(t), election)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("leads\n")
	<-lead.Context().Done()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a", "3s")
	w.acquire(w.client("a")).Close()
	_, err := w.client("a").Acquire(soon(t), "another")
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != 404 || len(refused.Text) < 8 {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.client("nobody").Acquire(ctx, election); err != context.DeadlineExceeded {
		t.Fatal(err)
	}
	if err := w.client("a").ReportHealth(soon(t), election, 900, "fine"); err != nil {
		t.Fatal(err)
	}
	if err := w.client("a").Alive(soon(t), election); err != nil {
		t.Fatal(err)
	}
}

// Those who waited in vain leave nothing behind.
func TestCycles(t *testing.T) {
	w := newWorld(t)
	w.serve("a", "3s")
	w.acquire(w.client("a"))
	c := w.client("a")
	cycle := func(n int) (goroutines, descriptors int) {
		for i := 0; i < n; i++ {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
			if _, err := c.Acquire(ctx, election); err != context.DeadlineExceeded {
				t.Fatal(err)
			}
			cancel()
		}
		c.http.CloseIdleConnections()
		for i := 0; i < 100; i++ { // what has been told to end takes a moment
			files, _ := os.ReadDir("/proc/self/fd")
			goroutines, descriptors = runtime.NumGoroutine(), len(files)
			time.Sleep(5 * time.Millisecond)
		}
		return goroutines, descriptors
	}
	goroutines, descriptors := cycle(20)
	moreGoroutines, moreDescriptors := cycle(500)
	if moreGoroutines > goroutines+2 || moreDescriptors > descriptors+2 {
		t.Fatalf("%d goroutines instead of %d, %d descriptors instead of %d", moreGoroutines,
			goroutines, moreDescriptors, descriptors)
	}
}

// A deadline of another machine or time namespace can't be compared.
func TestClock(t *testing.T) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	boot := strings.TrimSpace(string(id))
	second := time.Second.Nanoseconds()
	for _, one := range []struct {
		e    event
		want bool
	}{
		{event{Deadline: now() + second, TimeLeftMs: 1000, BootID: boot}, true},
		{event{Deadline: now() + second, TimeLeftMs: 1010, BootID: boot}, true},
		{event{Deadline: now() + second, TimeLeftMs: 1000, BootID: "another"}, false},
		{event{Deadline: now() + 3600*second, TimeLeftMs: 1000, BootID: boot}, false},
	} {
		if got := sharesClock(one.e); got != one.want {
			t.Errorf("%+v: %v", one.e, got)
		}
	}
}
