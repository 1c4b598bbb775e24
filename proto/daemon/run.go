package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every daemon.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// UsageError is an error in how the program was called: flags, configuration.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Main runs a daemon's command until it is done or a signal ends its context,
// and exits the process. A second signal ends it at once.
func Main(cmd *cobra.Command) {
	// After the first signal, the next has its ordinary effect.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	// Ending may take a while: the service manager is told at once.
	notified := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(notified)
		_ = notify(notifyStopping)
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	addVersionFlag(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{err} })
	err := cmd.ExecuteContext(ctx)
	signalled := ctx.Err() != nil
	stop()
	<-notified
	os.Exit(exitCode(cmd.Name(), err, signalled))
}

// exitCode returns why the program ends, and its exit code. A cancelled context
// is an ordinary end only if a signal asked for it.
func exitCode(name string, err error, signalled bool) int {
	if err == nil || signalled && errors.Is(err, context.Canceled) {
		return exitOK
	}
	message := fmt.Sprintf("%s: %v", name, err)
	if todo := adviceFor(err); todo != "" {
		message += "; " + todo
	}
	fmt.Fprintln(os.Stderr, message)
	if _, ok := errors.AsType[*UsageError](err); ok {
		return exitUsage
	}
	return exitError
}
