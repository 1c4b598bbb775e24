package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/printer"
)

// configVerbs are the verbs below `kctl config` that change kubeconfig files, or
// list one part of them.
func configVerbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{
		newSetContext(c), newSetCluster(c), newSetCredentials(c), newRenameContext(c), newConfigSet(c), newConfigUnset(c),
		newConfigDelete(c, "context"), newConfigDelete(c, "cluster"), newConfigDelete(c, "user"),
		newConfigList(c, "get-clusters", "clusters", "NAME"), newConfigList(c, "get-users", "users", "NAME"),
	}
}

// modify lets edit change the merged kubeconfig, and writes each part back to
// the file that it came from.
func modify(c *frame.CLI, edit func(*clientcmdapi.Config) error) error {
	files := c.Flags.Files()
	config, err := files.GetStartingConfig()
	if err != nil {
		return err // says the file
	}
	if err := edit(config); err != nil {
		return err
	}
	return clientcmd.ModifyConfig(files, *config, true) // says the file
}

// changed is the value of a flag if it was given, including the flags of all verbs.
func changed(cmd *cobra.Command, name string, into *string) {
	if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
		*into = flag.Value.String()
	}
}

func newSetContext(c *frame.CLI) *cobra.Command {
	var current bool
	cmd := &cobra.Command{
		Use:     "set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace]",
		Short:   "Set a context entry in kubeconfig",
		Example: "  kctl config set-context --current --namespace=blue",
		RunE: func(cmd *cobra.Command, args []string) error {
			var name, verb string
			switch named := len(args) == 1 && args[0] != ""; {
			case len(args) > 1:
				return frame.UsageError(cmd, "Unexpected args: %v", args)
			case !named && !current:
				return errors.New("you must specify a non-empty context name or --current")
			case named && current:
				return errors.New("you cannot specify both a context name and --current")
			}
			err := modify(c, func(config *clientcmdapi.Config) error {
				if name = config.CurrentContext; !current {
					name = args[0]
				} else if name == "" {
					return errors.New("no current context is set")
				}
				if verb = "modified"; config.Contexts[name] == nil {
					verb = "created"
				}
				context := entry(config.Contexts, name, clientcmdapi.NewContext)
				changed(cmd, "cluster", &context.Cluster)
				changed(cmd, "user", &context.AuthInfo)
				changed(cmd, "namespace", &context.Namespace)
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Context %q %s.\n", name, verb)
			return err
		},
	}
	cmd.Flags().BoolVar(&current, "current", false, "Modify the current context")
	return cmd
}

// setFile takes over the file that the flag names, if it was given.
func setFile(cmd *cobra.Command, flag string, file *string, data *[]byte, whole bool) error {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	changed(cmd, flag, file)
	return embed(file, data, whole)
}

// embed replaces a file's name by its content if asked to; names are stored as
// absolute ones, because a kubeconfig's relative names are relative to itself.
func embed(file *string, data *[]byte, whole bool) error {
	if *file == "" {
		return nil
	}
	path, err := filepath.Abs(*file)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	if !whole {
		*file, *data = path, nil
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("could not read %s: %w", path, err)
	}
	*file, *data = "", content
	return nil
}

// cluster has the flags of one `kctl config set-cluster` that no other verb has.
type cluster struct {
	whole bool
	proxy string
}

func newSetCluster(c *frame.CLI) *cobra.Command {
	s := &cluster{}
	cmd := &cobra.Command{
		Use: "set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] " +
			"[--tls-server-name=example.com]", Short: "Set a cluster entry in kubeconfig",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			if err := s.check(cmd, name); err != nil {
				return err
			}
			err = modify(c, func(config *clientcmdapi.Config) error {
				return s.set(cmd, entry(config.Clusters, name, clientcmdapi.NewCluster))
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Cluster %q set.\n", name)
			return err
		},
	}
	cmd.Flags().BoolVar(&s.whole, "embed-certs", false, "embed-certs for the cluster entry in kubeconfig")
	cmd.Flags().StringVar(&s.proxy, "proxy-url", "", "proxy-url for the cluster entry in kubeconfig")
	return cmd
}

// check refuses flags that contradict each other.
func (s *cluster) check(cmd *cobra.Command, name string) error {
	var authority string
	changed(cmd, "certificate-authority", &authority)
	switch {
	case name == "":
		return errors.New("you must specify a non-empty cluster name")
	case authority != "" && cmd.Flag("insecure-skip-tls-verify").Value.String() == "true":
		return errors.New("you cannot specify a certificate authority and insecure mode at the same time")
	case s.whole && authority == "":
		return errors.New("you must specify a --certificate-authority to embed")
	}
	return nil
}

// set changes what was given. A server that has another address has another name, and a
// server that is not verified has no authority: clients refuse to have both.
func (s *cluster) set(cmd *cobra.Command, cluster *clientcmdapi.Cluster) error {
	if cmd.Flag("server").Changed {
		cluster.TLSServerName = ""
	}
	changed(cmd, "server", &cluster.Server)
	changed(cmd, "tls-server-name", &cluster.TLSServerName)
	changed(cmd, "proxy-url", &cluster.ProxyURL)
	if insecure := cmd.Flag("insecure-skip-tls-verify"); insecure.Changed {
		if cluster.InsecureSkipTLSVerify = insecure.Value.String() == "true"; cluster.InsecureSkipTLSVerify {
			cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", nil
		}
	}
	if err := setFile(cmd, "certificate-authority", &cluster.CertificateAuthority, &cluster.CertificateAuthorityData, s.whole); err != nil {
		return err
	}
	var authority string
	if changed(cmd, "certificate-authority", &authority); authority != "" {
		cluster.InsecureSkipTLSVerify = false
	}
	return nil
}

func newRenameContext(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "rename-context CONTEXT_NAME NEW_NAME", Short: "Rename a context from the kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return frame.UsageError(cmd, "two names are required, got %d", len(args))
			}
			if args[1] == "" {
				return errors.New("You must specify a new non-empty context name") //nolint:staticcheck // kubectl's words
			}
			err := modify(c, func(config *clientcmdapi.Config) error {
				context, ok := config.Contexts[args[0]]
				if !ok {
					return fmt.Errorf("cannot rename the context %q, it's not in %s", args[0], c.Flags.Files().GetDefaultFilename())
				}
				if _, taken := config.Contexts[args[1]]; taken {
					return fmt.Errorf("cannot rename the context %q, the context %q already exists in %s",
						args[0], args[1], c.Flags.Files().GetDefaultFilename())
				}
				delete(config.Contexts, args[0])
				config.Contexts[args[1]] = context
				if config.CurrentContext == args[0] {
					config.CurrentContext = args[1]
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Context %q renamed to %q.\n", args[0], args[1])
			return err
		},
	}
}

func newConfigDelete(c *frame.CLI, what string) *cobra.Command {
	return &cobra.Command{
		Use: "delete-" + what + " NAME", Short: "Delete the specified " + what + " from the kubeconfig",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			where := c.Flags.Files().GetDefaultFilename()
			err = modify(c, func(config *clientcmdapi.Config) error {
				exists := false
				switch what {
				case "context":
					if _, exists = config.Contexts[name]; config.CurrentContext == name {
						fmt.Fprintf(c.Err, "warning: this removed your active context, use \"%s config use-context\" to select a different one\n", c.Name)
					}
					delete(config.Contexts, name)
				case "cluster":
					_, exists = config.Clusters[name]
					delete(config.Clusters, name)
				case "user":
					_, exists = config.AuthInfos[name]
					delete(config.AuthInfos, name)
				}
				if !exists {
					return fmt.Errorf("cannot delete %s %s, not in %s", what, name, where)
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "deleted %s %s from %s\n", what, name, where)
			return err
		},
	}
}

func newConfigList(c *frame.CLI, verb, what, header string) *cobra.Command {
	return &cobra.Command{
		Use: verb, Short: "Display " + what + " defined in the kubeconfig", Args: frame.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := c.Flags.Files().GetStartingConfig()
			if err != nil {
				return err
			}
			names := maps.Keys(config.Clusters)
			if what == "users" {
				names = maps.Keys(config.AuthInfos)
			}
			out := &printer.Columns{}
			out.Add(header)
			for _, name := range slices.Sorted(names) {
				out.Add(name)
			}
			return out.Flush(c.Out)
		},
	}
}
