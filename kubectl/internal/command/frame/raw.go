package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kctl/proto/rest"
)

// Raw is a verb's --raw: a path with a query, requested as it is, whose answer
// is printed in any form. Its errors are in kubectl's words.
type Raw struct {
	*CLI
	method string
	URI    string
}

// Add adds the flag to a verb. does is what the method does, for the help.
func (r *Raw) Add(cmd *cobra.Command, method, does string) {
	r.method = method
	cmd.Flags().StringVar(&r.URI, "raw", "", "Raw URI to "+does+" the server.")
}

// Run sends the one file, if there is one, and prints the answer as it arrives:
// it may be a watch, or a container's endless output.
func (r *Raw) Run(cmd *cobra.Command, files []string) error {
	if err := check(cmd, files); err != nil {
		return err
	}
	address, err := url.ParseRequestURI(r.URI)
	if err != nil {
		// Not wrapped: such an error is reported as a failure to reach the server.
		return fmt.Errorf("--raw must be a valid URL path: %v", err)
	}
	var body any
	if len(files) > 0 {
		if body, err = r.read(files[0]); err != nil {
			return err
		}
	}
	// Parameters that can't be read are left out, as kubectl does.
	return r.send(cmd.Context(), address.Path, body, address.Query())
}

func (r *Raw) send(ctx context.Context, path string, body any, query url.Values) error {
	client, err := r.Server()
	if err != nil {
		return err
	}
	return client.Do(ctx, r.method, path, body, r.Out, rest.Values(query), rest.Accept("application/json, */*"))
}

// read is the content of a file, or standard input, as it is.
func (r *Raw) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(r.Stdin())
	}
	return os.ReadFile(file)
}

// check refuses what would have no effect.
func check(cmd *cobra.Command, files []string) error {
	for _, file := range files {
		switch {
		case len(files) > 1:
			return errors.New("--raw can only use a single local file or stdin")
		case strings.HasPrefix(file, "http://"), strings.HasPrefix(file, "https://"):
			return errors.New("--raw cannot read from a url")
		}
	}
	if f := cmd.Flags().Lookup("kustomize"); f != nil && f.Changed {
		return errors.New("--raw can only use a single local file or stdin")
	}
	if f := cmd.Flags().Lookup("interactive"); f != nil && f.Changed {
		return errors.New("--interactive can not be used with --raw")
	}
	for _, flag := range []struct{ name, shown string }{
		{"recursive", "--recursive"}, {"edit", "--edit"}, {"selector", "--selector (-l)"}, {"output", "--output"},
		{"field-selector", "--field-selector"},
		{"all", "--all"}, {"all-namespaces", "--all-namespaces"}, {"dry-run", "--dry-run"}, {"force", "--force"},
		{"grace-period", "--grace-period"},
		{"cascade", "--cascade"}, {"watch", "--watch"}, {"watch-only", "--watch-only"}, {"subresource", "--subresource"},
		{"save-config", "--save-config"},
	} {
		if f := cmd.Flags().Lookup(flag.name); f != nil && f.Changed {
			return fmt.Errorf("--raw and %s are mutually exclusive", flag.shown)
		}
	}
	return nil
}
