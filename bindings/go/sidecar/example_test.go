package sidecar_test

// example_test.go: a program beside `baton serve --attach=require nightly-report`.

import (
	"context"
	"fmt"

	"baton/bindings/go/sidecar"
)

func ExampleClient_Run() {
	client := sidecar.New("") // or the path of its socket
	err := client.Run(context.Background(), "nightly-report",
		func(ctx context.Context, lead *sidecar.Lead) error {
			fmt.Println("leads in term", lead.Term())
			for lead.Leads() { // asks the clock: before each piece of work
				return sidecar.ErrDone // the work, with lead.Term() as its fencing token
			}
			return context.Cause(ctx)
		})
	fmt.Println("ended:", err)
}
