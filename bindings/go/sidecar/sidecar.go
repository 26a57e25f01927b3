// Package sidecar is leadership from a `baton serve` that runs beside the program: pure Go, without
// cgo and without the library. The connection is the work: while it is open the leadership is not
// passed on, and when the program dies the kernel closes it, so that the next one leads at once.
//
// A [Lead] has the members of the binding's own: its context is cancelled when the leadership ends,
// and [Lead.Leads] asks the clock. A sidecar can't end this program: what must not be written by a
// former leader needs a resource that checks the term.
package sidecar

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// How long to wait before a sidecar is asked again: one that isn't there or can't answer now, and one
// that has ended the connection.
const (
	retryWait = time.Second
	againWait = 50 * time.Millisecond
)

var (
	errClock = errors.New("baton: the sidecar has another clock; expected one on this machine")
	errOver  = errors.New("baton: the sidecar has ended the connection")
)

// ErrDone ends Run without an error when fn returns it.
var ErrDone = errors.New("baton: the work is done")

// An Error is what the sidecar refused: the status of HTTP, and one sentence.
type Error struct {
	Status int
	Text   string
}

func (e *Error) Error() string { return "baton: " + e.Text }

// A Client asks one sidecar. It has no state but idle connections.
type Client struct {
	// OnRetry, if there is one, is told why the sidecar will be asked again.
	OnRetry func(error)
	http    *http.Client
}

// New is a client of the sidecar that serves the unix socket; "" is the place where `baton serve`
// puts it by default. It does no I/O.
func New(socket string) *Client {
	if socket == "" {
		folder := os.Getenv("XDG_RUNTIME_DIR")
		if os.Geteuid() == 0 || folder == "" {
			folder = "/run"
		}
		socket = filepath.Join(folder, "baton", "serve.sock")
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial,
		DisableCompression: true, IdleConnTimeout: time.Minute}}}
}

// post sends an order of the application. The caller closes the body.
func (c *Client) post(ctx context.Context, election, verb, body string) (*http.Response, error) {
	target := "http://baton/v1/elections/" + url.PathEscape(election) + "/" + verb
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target,
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Baton-Request", "1")
	request.Header.Set("Accept", "application/x-ndjson")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	problem := struct{ Detail string }{"the sidecar answered " + answer.Status}
	_ = json.Unmarshal(text, &problem)
	return nil, &Error{answer.StatusCode, problem.Detail}
}

func (c *Client) order(ctx context.Context, election, verb string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answer, err := c.post(ctx, election, verb, string(text))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// ReportHealth says how healthy this candidate is, from 0 to 1000; "" leaves the metadata.
func (c *Client) ReportHealth(ctx context.Context, election string, score uint32,
	metadata string) error {
	body := map[string]any{"score": float64(score) / 1000}
	if metadata != "" {
		body["metadata"] = metadata
	}
	return c.order(ctx, election, "health", body)
}

// Alive is a sign of life of the work (`--work-timeout` of the sidecar).
func (c *Client) Alive(ctx context.Context, election string) error {
	return c.order(ctx, election, "alive", struct{}{})
}

// What the stream tells. Numbers of 64 bits are texts there.
type event struct {
	Event      string
	Reason     string
	Term       uint64 `json:",string"`
	Deadline   int64  `json:"deadline_boot_ns,string"`
	TimeLeftMs int64  `json:"time_left_ms"`
	BootID     string `json:"boot_id"`
}

// A stream is an open connection: it tells when this program leads.
type stream struct {
	lines *bufio.Scanner
	close func()
}

// open connects. The end of the caller's context must not end the connection once there is work.
func (c *Client) open(caller context.Context, election string) (*stream, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(caller))
	stop := context.AfterFunc(caller, cancel)
	answer, err := c.post(ctx, election, "lead?renewed=1", "")
	if !stop() && err == nil {
		err = caller.Err()
		_ = answer.Body.Close()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{bufio.NewScanner(answer.Body), func() {
		cancel()
		_ = answer.Body.Close()
	}}, nil
}

func (s *stream) next() (event, error) {
	var e event
	if !s.lines.Scan() {
		return e, errors.Join(errOver, s.lines.Err())
	}
	err := json.Unmarshal(s.lines.Bytes(), &e)
	return e, err
}

// await reads until this program leads.
func (s *stream) await() (event, error) {
	for {
		e, err := s.next()
		if err != nil {
			return e, err
		}
		switch e.Event {
		case "lost": // it was over before it could begin
			return e, errOver
		case "became", "renewed":
			if !sharesClock(e) {
				return e, errClock
			}
			if e.Deadline > now() {
				return e, nil
			}
		}
	}
}

// sharesClock says whether this program can compare the deadline with its own clock: not that of
// another machine, or of another time namespace. What is left can't grow on its way here.
func sharesClock(e event) bool {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	left := time.Duration(e.Deadline-now()) / time.Millisecond
	return err == nil && strings.TrimSpace(string(id)) == e.BootID &&
		int64(left) <= e.TimeLeftMs+1
}

// isFinal: to ask again would not help. A sidecar that isn't there may come.
func isFinal(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status/100 == 4 && refused.Status != http.StatusTooManyRequests
	}
	return errors.Is(err, errClock) || errors.Is(err, os.ErrPermission)
}

// Acquire waits until this program leads, and binds work to that leadership. The context of the
// lead is a child of ctx. Close the lead when the work has ended.
func (c *Client) Acquire(ctx context.Context, election string) (*Lead, error) {
	for {
		lead, err := c.acquire(ctx, election)
		wait := retryWait
		switch {
		case err == nil:
			return lead, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case isFinal(err):
			return nil, err
		case errors.Is(err, errOver):
			wait = againWait
		case c.OnRetry != nil:
			c.OnRetry(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) acquire(ctx context.Context, election string) (*Lead, error) {
	s, err := c.open(ctx, election)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.close)
	first, err := s.await()
	if !stop() || err != nil {
		s.close()
		return nil, errors.Join(err, ctx.Err())
	}
	lead, err := newLead(ctx, election, s, first)
	if err != nil {
		s.close()
	}
	return lead, err
}

// Run runs fn whenever this program leads. The context of fn is cancelled when the leadership ends,
// and [context.Cause] is then a [*LostError]; the leadership passes on only after fn has returned.
// If fn returns nil while it leads, the leadership is given back, and Run contends again. Run ends
// when ctx does, with its error, when the sidecar refuses ([*Error]), and when fn returns an error
// that is not the loss itself: with that error, or nil for [ErrDone].
func (c *Client) Run(ctx context.Context, election string,
	fn func(context.Context, *Lead) error) error {
	for {
		lead, err := c.Acquire(ctx, election)
		if err != nil {
			return err
		}
		lost, err := lead.do(fn)
		var loss *LostError
		if lost && (errors.Is(err, context.Canceled) || errors.As(err, &loss)) {
			err = nil
		}
		switch {
		case errors.Is(err, ErrDone):
			return nil
		case err != nil && !(ctx.Err() != nil && errors.Is(err, context.Canceled)):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
