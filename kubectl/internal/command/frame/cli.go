package frame

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/kubeconfig"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/schema"
	"kctl/proto/release"
	"kctl/proto/rest"
)

// CLI is what the verbs of one command line share. The server is looked up when
// a verb first needs it, so that verbs that need none work without one.
type CLI struct {
	Streams
	// Name is what the program is called: kctl, or Kubectl.
	Name      string
	Args      []string // as they were given, before preferences change them
	Flags     kubeconfig.Flags
	Verbosity int
	Clock     clock.WithTicker
	// KubercFile is what --kuberc says; the root reads the flag before it is parsed.
	KubercFile string
	// Strict makes the warnings of servers, which heard counts, errors.
	Strict bool
	heard  *atomic.Int32
	// MatchVersion refuses servers of a version other than kctl's own.
	MatchVersion bool

	read       bool // standard input, or a part of it
	loaded     *kubeconfig.Target
	client     *rest.Client
	discovered *discover.Discovery
	documents  map[apischema.GroupVersion]*schema.Document
}

// Kubectl is the name under which kctl takes kubectl's place.
const Kubectl = "kubectl"

// New returns a CLI that has not contacted a server yet.
func New(streams Streams, clock clock.WithTicker) *CLI {
	return &CLI{Streams: streams, Name: "kctl", Clock: clock, heard: &atomic.Int32{}}
}

// Kubeconfig is the server, user and namespace that the flags and files say.
func (c *CLI) Kubeconfig() (*kubeconfig.Target, error) {
	if c.loaded == nil {
		loaded, err := c.Flags.Load()
		if err != nil {
			return nil, err
		}
		loaded.Client.Timeout, loaded.Client.UserAgent = c.Flags.Timeout, userAgent()
		c.loaded = loaded
		c.keepStdin()
	}
	return c.loaded, nil
}

// Stdin is standard input, for verbs that read objects or values from it: credential
// plugins that ask the user for something are not run beside them.
func (c *CLI) Stdin() io.Reader { return stdin{c} }

type stdin struct{ *CLI }

func (s stdin) Read(p []byte) (int, error) {
	s.read = true
	s.keepStdin()
	return s.In.Read(p)
}

// keepStdin keeps standard input from credential plugins once a verb reads it.
func (c *CLI) keepStdin() {
	if c.read && c.loaded != nil && c.loaded.Client.ExecProvider != nil {
		c.loaded.Client.ExecProvider.StdinUnavailable = true
		c.loaded.Client.ExecProvider.StdinUnavailableMessage = "used by stdin resource manifest reader"
	}
}

// Namespace is the one that commands work in.
func (c *CLI) Namespace() (string, error) {
	target, err := c.Kubeconfig()
	if err != nil {
		return "", err
	}
	return target.Namespace, nil
}

// Server is the client of the API server.
func (c *CLI) Server() (*rest.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	target, err := c.Kubeconfig()
	if err != nil {
		return nil, err
	}
	client, err := target.Rest(c.WrapTransport)
	if err != nil {
		return nil, err
	}
	if c.MatchVersion {
		if err := matchVersion(client); err != nil {
			return nil, err
		}
	}
	c.client = client
	return client, nil
}

// matchVersion refuses a server of another version than ours. It takes no longer than
// --request-timeout.
func matchVersion(client *rest.Client) error {
	there, err := VersionOf(context.Background(), client)
	if err != nil {
		return err
	}
	if ours := release.Version().GitVersion; there.GitVersion != ours {
		return fmt.Errorf("server version (%s) differs from client version (%s)", there.GitVersion, ours)
	}
	return nil
}

// VersionOf is the version that a server reports.
func VersionOf(ctx context.Context, client *rest.Client) (*version.Info, error) {
	info := &version.Info{}
	if err := client.Do(ctx, http.MethodGet, "/version", nil, info); err != nil {
		return nil, err
	}
	return info, nil
}

// Discovery is what the server serves.
func (c *CLI) Discovery() (*discover.Discovery, error) {
	if c.discovered != nil {
		return c.discovered, nil
	}
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	cache := discover.Cache{Dir: c.Flags.DiscoveryCache(client.URL("")), Clock: c.Clock}
	c.discovered = discover.New(client, cache)
	c.discovered.Warn = c.Warn
	return c.discovered, nil
}

// Terminal tells whether a stream is a terminal, and how wide.
func Terminal(stream any) (width int, ok bool) {
	file, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// Colorful tells whether colours may be written to a stream (no-color.org).
func Colorful(stream io.Writer) bool {
	_, ok := Terminal(stream)
	return ok && os.Getenv("NO_COLOR") == "" && Movable()
}

// Movable tells whether the terminal understands more than lines of text: one that does not
// (of an editor, of a serial line) shows what moves the cursor as it is.
func Movable() bool { return os.Getenv("TERM") != "dumb" }

// Later does something after a while, unless the function that it returns is called
// before; once that has returned, it is done or never will be.
func (c *CLI) Later(after time.Duration, do func()) (cancel func()) {
	timer, done, ended := c.Clock.NewTimer(after), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C():
			do()
		}
	}()
	return func() { close(done); <-ended }
}

// Warn tells the user something that is not an error.
func (c *CLI) Warn(format string, args ...any) {
	prefix := "Warning:"
	if Colorful(c.Err) {
		prefix = "\x1b[33;1mWarning:\x1b[0m"
	}
	fmt.Fprintln(c.Err, prefix, printer.Visible(fmt.Sprintf(format, args...)))
}

// Detail prints what only users with -v 5 want to know.
func (c *CLI) Detail(format string, args ...any) {
	if c.Verbosity >= showDetails {
		fmt.Fprintln(c.Err, printer.Visible(fmt.Sprintf(format, args...)))
	}
}

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// userAgent is what kctl calls itself to servers.
func userAgent() string { return "kctl/" + release.Version().GitVersion }
