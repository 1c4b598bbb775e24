package read

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/kustomize"
)

func newKustomize(c *frame.CLI) *cobra.Command {
	var o kustomize.Options
	var output, restrictor string
	cmd := &cobra.Command{
		Use:   "kustomize [DIR]",
		Short: "Build a kustomization target from a directory",
		Long: "Print the objects that the kustomization.yaml of a directory describes: of this one, if none is named.\n\n" +
			"Repositories (github.com/…, ssh://…) are fetched by git. No other programs are run: no helm, no plugins and no functions.",
		Example: "  kctl kustomize overlays/production\n" +
			"  kctl kustomize overlays/production -o production.yaml\n" +
			"  kctl apply -k overlays/production",
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			switch {
			case len(args) > 1:
				return errors.New("specify one path to kustomization.yaml")
			case len(args) == 1:
				dir = args[0]
			}
			switch restrictor {
			case "LoadRestrictionsNone":
				o.Anywhere = true
			case "LoadRestrictionsRootOnly":
			default:
				return fmt.Errorf("illegal flag value --load-restrictor %s; legal values: [LoadRestrictionsRootOnly LoadRestrictionsNone]", restrictor)
			}
			built, err := kustomize.Build(dir, o)
			if err != nil {
				return err
			}
			return writeKustomized(c, built, output)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&output, "output", "o", "",
		"If specified, write output to this path: one file, or one for each object if it is a directory.")
	fs.StringVar(&restrictor, "load-restrictor", "LoadRestrictionsRootOnly",
		"If set to LoadRestrictionsNone, files that are not below the directory may be used.")
	for _, name := range []string{"enable-helm", "enable-alpha-plugins", "enable-exec", "enable-star", "network"} {
		refuseSwitch(cmd, name, "kctl runs no helm, no plugins and no functions for a kustomization")
	}
	return cmd
}

// refuseSwitch refuses one of kubectl's switches and says why.
func refuseSwitch(cmd *cobra.Command, name, why string) {
	cmd.Flags().BoolFunc(name, "not supported", func(value string) error {
		if value == "false" {
			return nil
		}
		return errors.New(why)
	})
	_ = cmd.Flags().MarkHidden(name)
}

func writeKustomized(c *frame.CLI, built resmap.ResMap, output string) error {
	if info, err := os.Stat(output); err == nil && info.IsDir() {
		return writeEach(built, output)
	}
	text, err := built.AsYaml()
	if err != nil {
		return fmt.Errorf("encoding the objects: %w", err)
	}
	if output == "" {
		_, err = c.Out.Write(text)
		return err
	}
	return os.WriteFile(output, text, 0o644) //nolint:gosec // with the permissions of its input files
}

// writeEach writes each object into a file of its own, which is named after it,
// and after its namespace where there are several.
func writeEach(built resmap.ResMap, dir string) error {
	for _, object := range built.ClusterScoped() {
		if err := writeOne(object, dir, ""); err != nil {
			return err
		}
	}
	namespaces := built.GroupedByCurrentNamespace()
	for namespace, objects := range namespaces {
		prefix := ""
		if len(namespaces) > 1 {
			prefix = namespace
		}
		for _, object := range objects {
			if err := writeOne(object, dir, prefix); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeOne(object *resource.Resource, dir, namespace string) error {
	text, err := object.AsYAML()
	if err != nil {
		return fmt.Errorf("encoding %s: %w", object.CurId(), err)
	}
	gvk := object.GetGvk()
	parts := slices.DeleteFunc([]string{namespace, gvk.Group, gvk.Version, gvk.Kind, object.GetName()},
		func(part string) bool { return part == "" })
	name := strings.ToLower(strings.Join(parts, "_")) + ".yaml"
	if filepath.Base(name) != name { // else somebody's kustomization could write anywhere
		return fmt.Errorf("no file can be named after %s", object.CurId())
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o644) //nolint:gosec // with the permissions of its input files
}
