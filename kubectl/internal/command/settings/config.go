package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/printer"
)

func newConfig(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("config", "Look at kubeconfig files, and change them")
	cmd.AddCommand(newConfigView(c), newCurrentContext(c), newUseContext(c), newGetContexts(c))
	cmd.AddCommand(configVerbs(c)...)
	return cmd
}

func newConfigView(c *frame.CLI) *cobra.Command {
	var raw, minify, flatten, merge bool
	var as printer.Options
	cmd := &cobra.Command{
		Use: "view", Short: "Display merged kubeconfig settings or a specified kubeconfig file", Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := viewed(c, merge)
			if err != nil {
				return err
			}
			if minify {
				changed(cmd, "context", &config.CurrentContext)
				if err := clientcmdapi.MinifyConfig(config); err != nil {
					return err
				}
			}
			switch {
			case flatten: // to be used as it is: with everything
				if err := clientcmdapi.FlattenConfig(config); err != nil {
					return err
				}
			case !raw:
				if err := clientcmdapi.RedactSecrets(config); err != nil {
					return err
				}
				clientcmdapi.ShortenConfig(config)
			}
			return printConfig(c, config, as)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "Display raw byte data and sensitive data")
	cmd.Flags().BoolVar(&minify, "minify", false, "Remove all information not used by current-context from the output")
	cmd.Flags().BoolVar(&flatten, "flatten", false,
		"Flatten the resulting kubeconfig file into self-contained output, with all keys and tokens")
	cmd.Flags().BoolVar(&merge, "merge", true, "Merge all kubeconfig files; false shows the one of --kubeconfig, which must be there")
	cmd.Flags().StringVarP(&as.Output, "output", "o", "", "Output format: yaml, json, jsonpath=…, go-template=…")
	cmd.Flags().Lookup("output").DefValue = "yaml"
	cmd.Flags().StringVar(&as.Template, "template", "",
		"Template string or path to template file to use when -o=go-template, -o=go-template-file")
	cmd.Flags().BoolVar(&as.AllowMissingKeys, "allow-missing-template-keys", true,
		"If true, ignore any errors in templates when a field or map key is missing in the template")
	cmd.Flags().Bool("show-managed-fields", false, "It has no effect: a kubeconfig has no managed fields.")
	return cmd
}

// viewed is what `kctl config view` shows: all files merged, or, if asked, the one that
// --kubeconfig names, which must be there.
func viewed(c *frame.CLI, merge bool) (*clientcmdapi.Config, error) {
	switch {
	case merge:
		return c.Flags.Files().GetStartingConfig()
	case c.Flags.File == "":
		return nil, errors.New("if merge==false a precise file must be specified")
	}
	return clientcmd.LoadFromFile(c.Flags.File)
}

func printConfig(c *frame.CLI, config *clientcmdapi.Config, as printer.Options) error {
	external, err := latest.Scheme.ConvertToVersion(config, latest.ExternalVersion)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	if as.Output == "yaml" || !as.Chosen() {
		encoded, err := runtime.Encode(latest.Codec, config)
		if err != nil {
			return fmt.Errorf("encoding the kubeconfig: %w", err)
		}
		if encoded, err = yaml.JSONToYAML(encoded); err != nil {
			return fmt.Errorf("encoding the kubeconfig: %w", err)
		}
		_, err = c.Out.Write(encoded)
		return err
	}
	p, err := printer.New(as)
	if err != nil {
		return err
	}
	return p.Print(c.Out, external)
}

func newCurrentContext(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "current-context", Short: "Display the current-context", Args: frame.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := c.Flags.Files().GetStartingConfig()
			if err != nil {
				return err
			}
			if config.CurrentContext == "" {
				return errors.New("current-context is not set")
			}
			_, err = fmt.Fprintln(c.Out, config.CurrentContext)
			return err
		},
	}
}

func newUseContext(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "use-context CONTEXT_NAME", Aliases: []string{"use"}, Short: "Set the current-context in a kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			err = modify(c, func(config *clientcmdapi.Config) error {
				if _, ok := config.Contexts[name]; !ok {
					return fmt.Errorf("no context exists with the name: %q", name)
				}
				config.CurrentContext = name
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Switched to context %q.\n", name)
			return err
		},
	}
}

func newGetContexts(c *frame.CLI) *cobra.Command {
	var noHeaders bool
	var format string
	cmd := &cobra.Command{
		Use: "get-contexts [NAME...]", Short: "Describe one or many contexts",
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := c.Flags.Files().GetStartingConfig()
			if err != nil {
				return err
			}
			if format != "" && format != "name" {
				return fmt.Errorf("output must be one of '' or 'name': %v", format)
			}
			return printContexts(c, config, args, noHeaders, format == "name")
		},
	}
	cmd.Flags().BoolVar(&noHeaders, "no-headers", false, "When using the default output format, don't print headers")
	cmd.Flags().StringVarP(&format, "output", "o", "", "Output format. One of: (name).")
	return cmd
}

func printContexts(c *frame.CLI, config *clientcmdapi.Config, names []string, noHeaders, nameOnly bool) error {
	var missing []error
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(config.Contexts))
	}
	slices.Sort(names)
	out := &printer.Columns{}
	if !noHeaders && !nameOnly {
		out.Add("CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE")
	}
	for _, name := range names {
		context, ok := config.Contexts[name]
		switch {
		case !ok:
			missing = append(missing, fmt.Errorf("context %s not found", name))
		case nameOnly:
			out.Add(name)
		default:
			current := ""
			if name == config.CurrentContext {
				current = "*"
			}
			out.Add(current, name, context.Cluster, context.AuthInfo, context.Namespace)
		}
	}
	return errors.Join(append(missing, out.Flush(c.Out))...)
}
