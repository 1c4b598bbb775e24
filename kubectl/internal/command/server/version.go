package server

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/printer"
	"kctl/proto/release"
)

// kustomizeVersion is the version of kustomize to which the library in use belongs (api
// v0.21.2).
const kustomizeVersion = "v5.8.2"

// versions is what `kctl version -o` prints. It is not an API object, but is
// printed like one.
type versions struct {
	ClientVersion *version.Info `json:"clientVersion,omitempty"`
	Kustomize     string        `json:"kustomizeVersion,omitempty"`
	ServerVersion *version.Info `json:"serverVersion,omitempty"`
}

func (v *versions) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (v *versions) DeepCopyObject() runtime.Object { c := *v; return &c }

// NewVersion is `kctl version`; the help lists it among the verbs about kctl itself.
func NewVersion(c *frame.CLI) *cobra.Command {
	var clientOnly bool
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the client and server version information", Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "" && format != "yaml" && format != "json" {
				return errors.New("--output must be 'yaml' or 'json'")
			}
			own := release.Version()
			both := &versions{ClientVersion: &own, Kustomize: kustomizeVersion}
			var failed error
			if !clientOnly {
				both.ServerVersion, failed = serverVersion(c, cmd)
			}
			if err := printVersions(c, both, format); err != nil {
				return err
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "If true, shows client version only (no server required).")
	cmd.Flags().StringVarP(&format, "output", "o", "", "One of 'yaml' or 'json'.")
	return cmd
}

func serverVersion(c *frame.CLI, cmd *cobra.Command) (*version.Info, error) {
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	return frame.VersionOf(cmd.Context(), client)
}

func printVersions(c *frame.CLI, v *versions, format string) error {
	if format != "" {
		p, err := printer.New(printer.Options{Output: format})
		if err != nil {
			return err
		}
		return p.Print(c.Out, v)
	}
	fmt.Fprintf(c.Out, "Client Version: %s\nKustomize Version: %s\n", v.ClientVersion.GitVersion, v.Kustomize)
	if v.ServerVersion != nil {
		fmt.Fprintf(c.Out, "Server Version: %s\n", printer.Visible(v.ServerVersion.GitVersion))
	}
	return nil
}
