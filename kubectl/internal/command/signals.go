package command

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"kctl/kubectl/internal/command/frame"
)

// untilSignal runs a command until it is done, or interrupted: its context ends with the
// first SIGINT or SIGTERM, and the second one ends the program.
//
// A command that SIGTERM has interrupted has cleaned up, and ends by that signal, as
// kubectl does: for systemd and container runtimes, that is no failure.
func untilSignal(command func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mortal := !signal.Ignored(syscall.SIGTERM)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	var terminated atomic.Bool
	go func() {
		select {
		case by := <-signals:
			terminated.Store(mortal && by == syscall.SIGTERM)
			signal.Stop(signals)
			cancel()
		case <-ctx.Done():
		}
	}()
	code := command(ctx)
	if code == frame.ExitInterrupted && terminated.Load() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-make(chan struct{}) // it ends here
	}
	return code
}
