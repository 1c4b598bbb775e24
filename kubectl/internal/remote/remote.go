package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// Streams are the user's ends; nil ones are not connected.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// TTY asks for a terminal in the container, and sets the user's, if In is one,
	// to raw mode.
	TTY bool
	// Detach are the keys that end a session with a terminal, by its input, and leave the
	// container running; none if there are no such keys.
	Detach []byte
}

// ExitError says that the command in the container ended with another code
// than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}

// Join upgrades a request to address and copies until either side ends. If that is because the
// user detached, the error is ErrDetached.
func Join(ctx context.Context, config *clientrest.Config, address *url.URL, s Streams) error {
	executor, err := newExecutor(config, address)
	if err != nil {
		return fmt.Errorf("preparing the connection: %w", err)
	}
	options := remotecommand.StreamOptions{Stdin: s.In, Stdout: s.Out, Stderr: s.Err, Tty: s.TTY}
	if s.TTY {
		options.Stderr = nil // a terminal has but one output
		sizes, restore, err := setRawMode(ctx, s.In)
		if err != nil {
			return err
		}
		defer restore()
		options.TerminalSizeQueue = sizes
	}
	typed := &detachable{in: s.In, keys: s.Detach}
	if s.TTY && s.In != nil && len(s.Detach) > 0 {
		options.Stdin = typed
	}
	// The library logs what breaks off, on a terminal that may still be raw; the error
	// says as much. A zero logger discards.
	err = executor.StreamWithContext(klog.NewContext(ctx, klog.Logger{}), options)
	if typed.left.Load() {
		return ErrDetached
	}
	if coded, ok := errors.AsType[exec.CodeExitError](err); ok {
		return &ExitError{Code: coded.Code}
	}
	return err
}

func newExecutor(config *clientrest.Config, address *url.URL) (remotecommand.Executor, error) {
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, address)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// setRawMode sets the terminal behind in to raw mode and follows its size. If in is
// not a terminal, it does nothing.
func setRawMode(ctx context.Context, in io.Reader) (remotecommand.TerminalSizeQueue, func(), error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, func() {}, nil
	}
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("setting the terminal to raw mode: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	sizes := newSizes(ctx, int(file.Fd()))
	return sizes, func() {
		stop()
		_ = term.Restore(int(file.Fd()), before)
	}, nil
}

// sizeQueue tells the terminal's size whenever it changes.
type sizeQueue struct {
	ctx     context.Context // of the connection; Next has no parameter for it
	fd      int
	changed chan os.Signal
	first   bool
}

func newSizes(ctx context.Context, fd int) *sizeQueue {
	s := &sizeQueue{ctx: ctx, fd: fd, changed: make(chan os.Signal, 1), first: true}
	signal.Notify(s.changed, syscall.SIGWINCH)
	context.AfterFunc(ctx, func() { signal.Stop(s.changed) })
	return s
}

// Next returns the next size, or nil when the connection ends.
func (s *sizeQueue) Next() *remotecommand.TerminalSize {
	if !s.first {
		select {
		case <-s.ctx.Done():
			return nil
		case <-s.changed:
		}
	}
	s.first = false
	width, height, err := term.GetSize(s.fd)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
}
