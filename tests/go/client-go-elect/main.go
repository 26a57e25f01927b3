// client-go-elect KUBECONFIG NAMESPACE LEASE NAME DURATION DEADLINE RETRY: a candidate of client-go.
//
// It says `leading TIME`, `resigned TIME`, and `lost TIME` when it could not renew.
package main

import (
	"context"
	"os"

	"baton/tests/go/rival"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	if len(os.Args) != 8 {
		rival.Die("usage: client-go-elect KUBECONFIG NAMESPACE LEASE NAME DURATION DEADLINE RETRY")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		rival.Die(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		rival.Die(err)
	}
	elector := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: os.Args[2], Name: os.Args[3]},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: os.Args[4]},
		},
		LeaseDuration:   rival.Duration(os.Args[5]),
		RenewDeadline:   rival.Duration(os.Args[6]),
		RetryPeriod:     rival.Duration(os.Args[7]),
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { rival.Say("leading") },
			OnStoppedLeading: func() {},
		},
	}
	commands := rival.Commands()
	for lives(elector, commands) {
	}
}

// lives campaigns and leads until it is told to resign, or has lost; then until it may campaign
// again. False: the end of the commands.
func lives(config leaderelection.LeaderElectionConfig, commands <-chan string) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan bool)
	go func() {
		leaderelection.RunOrDie(ctx, config)
		close(ended)
	}()
	select {
	case <-ended:
		rival.Say("lost")
		return true
	case command := <-commands:
		cancel()
		<-ended
		if command != "resign" {
			return false
		}
		rival.Say("resigned")
	}
	for command := range commands {
		if command == "campaign" {
			return true
		}
	}
	return false
}
