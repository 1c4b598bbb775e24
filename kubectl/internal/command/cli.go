package command

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/kubeconfig"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/schema"
	"kctl/proto/rest"
)

// cli is what the verbs of one command line share. The server is looked for
// when a verb first needs it, so that verbs that don't work without one.
type cli struct {
	Streams
	flags     kubeconfig.Flags
	verbosity int
	clock     clock.WithTicker
	// kubercFile is what --kuberc says; prefer reads the flag before it is parsed.
	kubercFile string
	// strict makes the warnings of servers, which heard counts, errors.
	strict bool
	heard  *atomic.Int32

	loaded     *kubeconfig.Target
	client     *rest.Client
	discovered *discover.Discovery
	documents  map[apischema.GroupVersion]*schema.Document
}

func newCLI(streams Streams, clock clock.WithTicker) *cli {
	return &cli{Streams: streams, clock: clock, heard: &atomic.Int32{}}
}

// target is the server, user and namespace that the flags and files say.
func (c *cli) target() (*kubeconfig.Target, error) {
	if c.loaded == nil {
		loaded, err := c.flags.Load()
		if err != nil {
			return nil, err
		}
		loaded.Client.Timeout, loaded.Client.UserAgent = c.flags.Timeout, userAgent()
		c.loaded = loaded
	}
	return c.loaded, nil
}

// namespace is the one that commands work in.
func (c *cli) namespace() (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return target.Namespace, nil
}

// server is the client of the API server.
func (c *cli) server() (*rest.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	client, err := target.Rest(c.wrapTransport)
	if err != nil {
		return nil, err
	}
	c.client = client
	return client, nil
}

// discovery is what the server serves.
func (c *cli) discovery() (*discover.Discovery, error) {
	if c.discovered != nil {
		return c.discovered, nil
	}
	client, err := c.server()
	if err != nil {
		return nil, err
	}
	cache := discover.Cache{Dir: c.flags.DiscoveryCache(client.URL("")), Clock: c.clock}
	c.discovered = discover.New(client, cache)
	return c.discovered, nil
}

// terminal tells whether a stream is a terminal, and how wide.
func terminal(stream any) (width int, ok bool) {
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

// colorful tells whether colours may be written to a stream (no-color.org).
func colorful(stream io.Writer) bool {
	_, ok := terminal(stream)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// warn tells the user something that is no error.
func (c *cli) warn(format string, args ...any) {
	prefix := "Warning:"
	if colorful(c.Err) {
		prefix = "\x1b[33;1mWarning:\x1b[0m"
	}
	fmt.Fprintln(c.Err, prefix, printer.Visible(fmt.Sprintf(format, args...)))
}
