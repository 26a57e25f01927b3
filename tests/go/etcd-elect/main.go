// etcd-elect ENDPOINT,... PREFIX NAME LEASE: a candidate of etcd's own concurrency package.
//
// It says `leading TIME REVISION`, `resigned TIME`, and `lost TIME` when its lease has ended.
package main

import (
	"context"
	"os"
	"strings"

	"baton/tests/go/rival"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	if len(os.Args) != 5 {
		rival.Die("usage: etcd-elect ENDPOINT,... PREFIX NAME LEASE")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(os.Args[1], ",")})
	if err != nil {
		rival.Die(err)
	}
	ttl := int(rival.Duration(os.Args[4]).Seconds())
	commands := rival.Commands()
	for {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
		if err != nil {
			rival.Die(err)
		}
		for lives(session, os.Args[2], os.Args[3], commands) {
		}
	}
}

// lives campaigns, leads, and resigns when it is told to. False: the session has ended.
func lives(session *concurrency.Session, prefix, name string, commands <-chan string) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	election := concurrency.NewElection(session, prefix)
	won := make(chan error, 1)
	go func() { won <- election.Campaign(ctx, name) }()
	select {
	case err := <-won:
		if err != nil {
			rival.Say("lost", err)
			return false
		}
	case <-session.Done():
		rival.Say("lost")
		return false
	case <-commands: // whoever doesn't lead has nothing to resign: the end
		session.Close()
		os.Exit(0)
	}
	rival.Say("leading", election.Rev())
	for {
		select {
		case <-session.Done():
			rival.Say("lost")
			return false
		case command, more := <-commands:
			if !more {
				session.Close()
				os.Exit(0)
			}
			switch command {
			case "resign":
				if err := election.Resign(ctx); err != nil {
					rival.Die(err)
				}
				rival.Say("resigned")
			case "campaign":
				return true
			}
		}
	}
}
