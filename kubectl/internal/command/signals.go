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
// first SIGINT or SIGTERM, and the second one ends the program. A shell's script starts what
// runs in its background without SIGINT: Ctrl-C is not for it.
//
// A command that SIGTERM has interrupted has cleaned up, and ends by that signal, as
// kubectl does: for systemd and container runtimes, that is no failure.
func untilSignal(command func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if !signal.Ignored(os.Interrupt) {
		signal.Notify(signals, os.Interrupt)
	}
	defer signal.Stop(signals)
	var terminated atomic.Bool
	go func() {
		select {
		case by := <-signals:
			signal.Stop(signals) // before anybody sends the next one, which is to end the program
			terminated.Store(by == syscall.SIGTERM)
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
