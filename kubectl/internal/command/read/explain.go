package read

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/schema"
)

func newExplain(c *frame.CLI) *cobra.Command {
	var depth schema.Depth
	var version, format string
	cmd := &cobra.Command{
		Use:     "explain TYPE [--recursive] [--api-version=GROUP/VERSION]",
		Short:   "Get documentation for a resource",
		Example: "  kctl explain pods\n  kctl explain pods.spec.containers\n  kctl explain deployment --api-version=apps/v1",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("You must specify the type of resource to explain. "+ //nolint:staticcheck // kubectl's words
					`Use "%s api-resources" for a complete list of supported resources.`, c.Name)
			case len(args) > 1:
				return errors.New("We accept only this format: explain RESOURCE") //nolint:staticcheck // kubectl's words
			case depth.Max > 0 && !depth.Recursive:
				return errors.New("--max-depth requires --recursive")
			case depth.Max < 0:
				return errors.New("--max-depth must be non-negative")
			case format != "plaintext" && format != plaintextV2:
				return fmt.Errorf("--output must be plaintext or %s: kctl has no other form", plaintextV2)
			}
			return explain(cmd.Context(), c, args[0], version, format, depth)
		},
	}
	cmd.Flags().BoolVarP(&depth.Recursive, "recursive", "R", false, "When true, print the name of all the fields recursively.")
	cmd.Flags().IntVar(&depth.Max, "max-depth", 0, "How many levels of fields --recursive prints; 0 for all.")
	cmd.Flags().StringVar(&version, "api-version", "", "Use given api-version (group/version) of the resource.")
	cmd.Flags().StringVarP(&format, "output", "o", "plaintext", "Format in which to render the schema (plaintext, "+plaintextV2+").")
	return cmd
}

// plaintextV2 is the layout of old, of what the server says in OpenAPI v2.
const plaintextV2 = "plaintext-openapiv2"

func explain(ctx context.Context, c *frame.CLI, what, version, format string, depth schema.Depth) error {
	discovery, err := c.Discovery()
	if err != nil {
		return err
	}
	resource, path, err := parseFieldPath(ctx, discovery, what, version)
	if err != nil {
		return frame.NoResource(err)
	}
	client, err := c.Server()
	if err != nil {
		return err
	}
	var fields []string
	if path != "" {
		fields = strings.Split(strings.Trim(path, "."), ".")
	}
	if format == plaintextV2 {
		document, err := schema.LoadV2(ctx, client)
		if err != nil {
			return err
		}
		return document.ExplainV2(printer.VisibleTo(c.Out), resource.GVK(), fields, depth)
	}
	document, err := schema.Load(ctx, client, resource.GVK().GroupVersion())
	if err != nil {
		return err
	}
	return document.Explain(printer.VisibleTo(c.Out), resource.GVK(), fields, depth)
}

// parseFieldPath reads TYPE[.GROUP][.FIELD…].
func parseFieldPath(ctx context.Context, discovery *discover.Discovery,
	what, version string) (resource discover.Resource, path string, err error) {
	name, path, _ := strings.Cut(what, ".")
	if name == "" || strings.Contains("."+path, "..") {
		return resource, "", errors.New("invalid jsonpath syntax, first node must be field node")
	}
	if version != "" {
		gv, err := apischema.ParseGroupVersion(version)
		if err != nil {
			return resource, "", err
		}
		resource, err := discovery.Named(ctx, name+"."+gv.Version+"."+gv.Group)
		if err != nil {
			if _, err := discovery.Named(ctx, name); err != nil { // in no version
				return resource, "", err
			}
			return resource, "", fmt.Errorf("couldn't find resource for %q", gv.WithResource(name).String())
		}
		return resource, path, nil
	}
	all, err := discovery.Resources(ctx)
	if err != nil {
		return resource, "", err
	}
	for _, r := range all {
		fields, ok := strings.CutPrefix(path, r.Group)
		if r.Group == "" || !ok || fields != "" && fields[0] != '.' {
			continue
		}
		if in, err := discovery.Named(ctx, name+"."+r.Group); err == nil {
			return in, strings.TrimPrefix(fields, "."), nil
		}
	}
	resource, err = discovery.Named(ctx, name)
	return resource, path, err
}
