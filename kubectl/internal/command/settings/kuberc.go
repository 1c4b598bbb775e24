package settings

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
	"kctl/kubectl/internal/printer"
)

func newKuberc(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("kuberc", "Manage user preferences (kuberc) file")
	cmd.AddCommand(newKubercView(c), newKubercSet(c))
	return cmd
}

// kuberc is the file that --kuberc and the environment say, and its content: nil
// where there is none.
func kuberc(c *frame.CLI) (string, *preferences.Preference, error) {
	var args []string
	if c.KubercFile != "" {
		args = []string{"--" + preferences.Flag, c.KubercFile}
	}
	path, _, err := preferences.File(args)
	if err != nil {
		return "", nil, err
	}
	loaded, _, err := preferences.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("error reading kuberc file: %w", err)
	}
	return path, loaded, nil
}

func newKubercView(c *frame.CLI) *cobra.Command {
	as := printer.Options{}
	cmd := &cobra.Command{
		Use: "view", Short: "Display the current kuberc configuration",
		RunE: func(*cobra.Command, []string) error {
			p, err := printer.New(as)
			if err != nil {
				return err
			}
			path, loaded, err := kuberc(c)
			if err != nil {
				return err
			}
			if loaded == nil {
				_, err := fmt.Fprintf(c.Err, "kuberc file not found at %s\n", path)
				return err
			}
			loaded.Defaults = append([]preferences.Defaults{}, loaded.Defaults...) // never null, as kubectl has it
			loaded.Aliases = append([]preferences.Alias{}, loaded.Aliases...)
			return p.Print(c.Out, loaded)
		},
	}
	cmd.Flags().StringVarP(&as.Output, "output", "o", "yaml", "Output format: yaml, json, jsonpath=…, go-template=…")
	cmd.Flags().StringVar(&as.Template, "template", "",
		"Template string or path to template file to use when -o=go-template, -o=go-template-file")
	cmd.Flags().BoolVar(&as.AllowMissingKeys, "allow-missing-template-keys", true,
		"If true, ignore any errors in templates when a field or map key is missing in the template")
	cmd.Flags().Bool("show-managed-fields", false, "It has no effect: a kuberc has no managed fields.")
	return cmd
}

// kubercChange is what `kctl kuberc set` is to change.
type kubercChange struct {
	section, command, name, policy              string
	options, prependArgs, appendArgs, allowlist []string
	overwrite                                   bool
}

func newKubercSet(c *frame.CLI) *cobra.Command {
	var change kubercChange
	cmd := &cobra.Command{
		Use: "set --section (defaults|aliases|credentialplugin)", Short: "Set values in the kuberc configuration", Args: frame.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := change.validate(); err != nil {
				return err
			}
			path, loaded, err := kuberc(c)
			if err != nil {
				return err
			}
			if loaded == nil {
				loaded = &preferences.Preference{}
			}
			if err := change.apply(loaded); err != nil {
				return err
			}
			if err := loaded.Save(path); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Updated %s\n", path)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&change.section, "section", "", "Section to modify: 'defaults', 'aliases', or 'credentialplugin'")
	f.StringVar(&change.command, "command", "", "Command to configure (e.g., 'get', 'create', 'set env')")
	f.StringVar(&change.name, "name", "", "Alias name (required for --section=aliases)")
	f.StringVar(&change.policy, "policy", "",
		"Plugin policy to use for exec credential plugins, must be one of 'AllowAll', 'DenyAll' or 'Allowlist'")
	f.StringArrayVar(&change.options, "option", nil, "Flag option in the form flag=value (can be specified multiple times)")
	f.StringArrayVar(&change.prependArgs, "prependarg", nil,
		"Argument to prepend to the command (can be specified multiple times, for aliases only)")
	f.StringArrayVar(&change.appendArgs, "appendarg", nil,
		"Argument to append to the command (can be specified multiple times, for aliases only)")
	f.StringArrayVar(&change.allowlist, "allowlist-entry", nil, "Allowlist entry of the form command=PLUGIN (can be specified multiple times)")
	f.BoolVar(&change.overwrite, "overwrite", false, "Allow overwriting existing entries")
	cobra.CheckErr(cmd.MarkFlagRequired("section"))
	return cmd
}

func (k *kubercChange) validate() error {
	aliases, plugins := k.section == "aliases", k.section == "credentialplugin"
	switch {
	case !aliases && !plugins && k.section != "defaults":
		return fmt.Errorf(`--section must be "defaults", "aliases", or "credentialplugin", got: %s`, k.section)
	case aliases && k.name == "":
		return errors.New("--name is required when --section=aliases")
	case !plugins && k.command == "":
		return errors.New("--command is required when --section=aliases or --section=defaults")
	case !aliases && k.name != "":
		return fmt.Errorf("--name should not be specified when --section=%s", k.section)
	case !aliases && len(k.prependArgs)+len(k.appendArgs) > 0:
		return errors.New("--prependarg and --appendarg are only valid for --section=aliases")
	case plugins && k.policy == "":
		return errors.New("--policy is required when --section=credentialplugin")
	case plugins && !slices.Contains([]string{"AllowAll", "DenyAll", "Allowlist"}, k.policy):
		return fmt.Errorf(`--policy must be  "AllowAll", "DenyAll", or "Allowlist", got: %s`, k.policy)
	case plugins && k.policy == "Allowlist" && len(k.allowlist) == 0:
		return errors.New("--allowlist-entry is required when --section=credentialplugin and --policy=Allowlist")
	case len(k.allowlist) > 0 && k.policy != "Allowlist":
		return errors.New("--allowlist-entry may only be used when --section=credentialplugin and --policy=Allowlist")
	}
	return nil
}

func (k *kubercChange) apply(to *preferences.Preference) error {
	switch k.section {
	case "credentialplugin":
		to.Policy, to.Allowlist = clientcmdapi.PolicyType(k.policy), nil
		for _, entry := range k.allowlist {
			field, value, ok := strings.Cut(entry, "=")
			switch {
			case !ok:
				return fmt.Errorf("improperly formatted allowlist entry: %q", entry)
			case field == "name":
				return errors.New(`allowlist entry field "name" is deprecated, use "command" instead`)
			case field != "command":
				return fmt.Errorf("unrecognized allowlist entry field: %q", field)
			case strings.TrimSpace(value) == "":
				return fmt.Errorf("empty value in allowlist entry for field %q", field)
			}
			to.Allowlist = append(to.Allowlist, preferences.AllowlistEntry{Command: value})
		}
		return nil
	}
	var options []preferences.Option
	for _, text := range k.options {
		flag, value, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("invalid option format %q, expected flag=value", text)
		}
		options = append(options, preferences.Option{Name: strings.TrimLeft(flag, "-"), Default: value})
	}
	if k.section == "defaults" {
		return k.setDefaults(to, preferences.Defaults{Command: k.command, Options: options})
	}
	return k.setAlias(to, preferences.Alias{
		Name: k.name, Command: k.command, PrependArgs: k.prependArgs, AppendArgs: k.appendArgs, Options: options,
	})
}

func (k *kubercChange) setDefaults(to *preferences.Preference, set preferences.Defaults) error {
	i := slices.IndexFunc(to.Defaults, func(d preferences.Defaults) bool { return d.Command == set.Command })
	switch {
	case i < 0:
		to.Defaults = append(to.Defaults, set)
	case !k.overwrite:
		return fmt.Errorf("defaults for command %q already exist, use --overwrite to replace", set.Command)
	default:
		to.Defaults[i] = set
	}
	return nil
}

// setAlias keeps those arguments and options of an overwritten alias that are
// not given again, as kubectl does.
func (k *kubercChange) setAlias(to *preferences.Preference, set preferences.Alias) error {
	i := slices.IndexFunc(to.Aliases, func(a preferences.Alias) bool { return a.Name == set.Name })
	if i < 0 {
		to.Aliases = append(to.Aliases, set)
		return nil
	}
	if !k.overwrite {
		return fmt.Errorf("alias %q already exists, use --overwrite to replace", set.Name)
	}
	old := to.Aliases[i]
	if set.PrependArgs == nil {
		set.PrependArgs = old.PrependArgs
	}
	if set.AppendArgs == nil {
		set.AppendArgs = old.AppendArgs
	}
	if set.Options == nil {
		set.Options = old.Options
	}
	to.Aliases[i] = set
	return nil
}
