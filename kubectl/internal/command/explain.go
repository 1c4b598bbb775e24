package command

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/kubectl/internal/schema"
	"kctl/proto/core"
)

func newExplain(c *cli) *cobra.Command {
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
			return c.explain(cmd.Context(), args[0], version, recursive)
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "When true, print the name of all the fields recursively.")
	cmd.Flags().StringVar(&version, "api-version", "", "Use given api-version (group/version) of the resource.")
	cmd.Flags().StringVarP(&format, "output", "o", "plaintext", "Format in which to render the schema (plaintext).")
	return cmd
}

func (c *cli) explain(ctx context.Context, what, version string, recursive bool) error {
	discovery, err := c.discovery()
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
	client, err := c.server()
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

// patchSchema tells how the lists of a kind are merged: from the type where
// kctl has one, or else from what the server says. Nil is for kinds that are
// merged as plain JSON, such as custom resources.
func (c *cli) patchSchema(ctx context.Context, kind apischema.GroupVersionKind) (strategicpatch.LookupPatchMeta, error) {
	object, err := core.Scheme.New(kind)
	if err == nil {
		meta, err := strategicpatch.NewPatchMetaFromStruct(object)
		return meta, err
	}
	if !runtime.IsNotRegisteredError(err) {
		return nil, err
	}
	client, err := c.server()
	if err != nil {
		return nil, err
	}
	gv := kind.GroupVersion()
	document, known := c.documents[gv]
	if !known {
		document, err = schema.Load(ctx, client, gv)
		if err != nil && !apierrors.IsNotFound(errors.Unwrap(err)) {
			return nil, err
		}
		if c.documents == nil {
			c.documents = map[apischema.GroupVersion]*schema.Document{}
		}
		c.documents[gv] = document
	}
	if document == nil {
		return nil, nil
	}
	if meta := document.Merging(kind); meta != nil {
		return meta, nil
	}
	return nil, nil
}
