package read

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/schema"
)

func newExplain(c *frame.CLI) *cobra.Command {
	var recursive bool
	var version, format string
	cmd := &cobra.Command{
		Use:     "explain TYPE [--recursive] [--api-version=GROUP/VERSION]",
		Short:   "Get documentation for a resource",
		Example: "  kctl explain pods\n  kctl explain pods.spec.containers\n  kctl explain deployment --api-version=apps/v1",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New(`You must specify the type of resource to explain. Use "kctl api-resources" for a complete list of supported resources.`) //nolint:staticcheck // kubectl's words
			case len(args) > 1:
				return errors.New("We accept only this format: explain RESOURCE") //nolint:staticcheck // kubectl's words
			case format != "plaintext":
				return errors.New("--output must be plaintext: kctl has no other form")
			}
			return explain(cmd.Context(), c, args[0], version, recursive)
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "When true, print the name of all the fields recursively.")
	cmd.Flags().StringVar(&version, "api-version", "", "Use given api-version (group/version) of the resource.")
	cmd.Flags().StringVarP(&format, "output", "o", "plaintext", "Format in which to render the schema (plaintext).")
	return cmd
}

func explain(ctx context.Context, c *frame.CLI, what, version string, recursive bool) error {
	discovery, err := c.Discovery()
	if err != nil {
		return err
	}
	name, path, _ := strings.Cut(what, ".")
	resource, err := discovery.Named(ctx, name)
	if version != "" && err == nil {
		gv, parseErr := apischema.ParseGroupVersion(version)
		if parseErr != nil {
			return parseErr
		}
		resource, err = discovery.Named(ctx, name+"."+gv.Version+"."+gv.Group)
	}
	if err != nil {
		// TYPE.GROUP/… : a name with dots that is no path
		full, fullErr := discovery.Named(ctx, what)
		if fullErr != nil {
			return err
		}
		resource, path = full, ""
	}
	client, err := c.Server()
	if err != nil {
		return err
	}
	document, err := schema.Load(ctx, client, resource.GVK().GroupVersion())
	if err != nil {
		return err
	}
	var fields []string
	if path != "" {
		fields = strings.Split(strings.Trim(path, "."), ".")
	}
	return document.Explain(c.Out, resource.GVK(), fields, recursive)
}
