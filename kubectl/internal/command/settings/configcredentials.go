package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/command/frame"
)

// credentials has the flags of one `kctl config set-credentials`.
type credentials struct {
	whole              bool
	username, password string
	exec               execPlugin
	provider           string
	providerArgs       []string
}

// execPlugin has those of them that are about a program which finds out the credentials.
type execPlugin struct {
	command, version, mode string
	args, env              []string
	clusterInfo            bool
}

func newSetCredentials(c *frame.CLI) *cobra.Command {
	s := &credentials{}
	cmd := &cobra.Command{
		Use: "set-credentials NAME [--client-certificate=path] [--client-key=path] [--token=bearer_token] [--username=basic_user] " +
			"[--password=basic_password] [--exec-command=exec_command]", Short: "Set a user entry in kubeconfig",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			if err := s.check(cmd.Flags(), name); err != nil {
				return err
			}
			err = modify(c, func(config *clientcmdapi.Config) error {
				return s.set(cmd, entry(config.AuthInfos, name, clientcmdapi.NewAuthInfo))
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "User %q set.\n", name)
			return err
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&s.whole, "embed-certs", false, "Embed client cert/key for the user entry in kubeconfig")
	fs.StringVar(&s.username, "username", "", "username for the user entry in kubeconfig")
	fs.StringVar(&s.password, "password", "", "password for the user entry in kubeconfig")
	fs.StringVar(&s.exec.command, "exec-command", "", "Command for the exec credential plugin for the user entry in kubeconfig")
	fs.StringVar(&s.exec.version, "exec-api-version", "client.authentication.k8s.io/v1",
		"API version of the exec credential plugin for the user entry in kubeconfig")
	fs.StringSliceVar(&s.exec.args, "exec-arg", nil, "New arguments for the exec credential plugin command for the user entry in kubeconfig")
	fs.StringArrayVar(&s.exec.env, "exec-env", nil, "'key=value' environment values for the exec credential plugin; 'key-' removes one")
	fs.StringVar(&s.exec.mode, "exec-interactive-mode", "",
		"Whether the exec credential plugin may read standard input: IfAvailable, which a new one has, Never or Always")
	fs.BoolVar(&s.exec.clusterInfo, "exec-provide-cluster-info", false,
		"If true, the exec credential plugin is told about the cluster, in $KUBERNETES_EXEC_INFO")
	fs.StringVar(&s.provider, "auth-provider", "", "Auth provider for the user entry in kubeconfig")
	fs.StringSliceVar(&s.providerArgs, "auth-provider-arg", nil, "'key=value' arguments for the auth provider; 'key-' removes one")
	return cmd
}

func (s *credentials) check(fs *pflag.FlagSet, name string) error {
	if name == "" {
		return errors.New("you must specify a non-empty user name")
	}
	if s.whole && !fs.Changed("client-certificate") && !fs.Changed("client-key") {
		return errors.New("you must specify a --client-certificate or --client-key to embed")
	}
	if token := fs.Lookup("token"); token != nil && token.Value.String() != "" && s.username+s.password != "" { // empty ones are taken away
		return errors.New("you cannot specify more than one authentication method at the same time: --token, --username/--password")
	}
	modes := []clientcmdapi.ExecInteractiveMode{clientcmdapi.IfAvailableExecInteractiveMode, clientcmdapi.NeverExecInteractiveMode,
		clientcmdapi.AlwaysExecInteractiveMode}
	if fs.Changed("exec-interactive-mode") && !slices.Contains(modes, clientcmdapi.ExecInteractiveMode(s.exec.mode)) {
		return errors.New("invalid interactive mode type, can be only IfAvailable, Never, Always")
	}
	for flag, pairs := range map[string][]string{"exec-env": s.exec.env, "auth-provider-arg": s.providerArgs} {
		for _, pair := range pairs {
			if key, _, removes := splitPair(pair); key == "" || !removes && !strings.Contains(pair, "=") {
				return fmt.Errorf("invalid %s format: %s", flag, pair)
			}
		}
	}
	return nil
}

// splitPair splits key=value, and key- which removes it.
func splitPair(pair string) (key, value string, removes bool) {
	key, value, given := strings.Cut(pair, "=")
	if given {
		return key, value, false
	}
	key, removes = strings.CutSuffix(pair, "-")
	return key, "", removes
}

func (s *credentials) set(cmd *cobra.Command, user *clientcmdapi.AuthInfo) error {
	changed(cmd, "token", &user.Token)
	changed(cmd, "username", &user.Username)
	changed(cmd, "password", &user.Password)
	switch given := cmd.Flags().Changed; { // the one replaces the other
	case given("token") && user.Token != "":
		user.Username, user.Password = "", ""
	case s.username+s.password != "":
		user.Token = ""
	}
	s.setProvider(cmd.Flags(), user)
	s.exec.set(cmd.Flags(), user)
	if err := setFile(cmd, "client-certificate", &user.ClientCertificate, &user.ClientCertificateData, s.whole); err != nil {
		return err
	}
	return setFile(cmd, "client-key", &user.ClientKey, &user.ClientKeyData, s.whole)
}

// setProvider keeps the arguments of the provider that is there. Without one, there is
// nothing to give arguments to.
func (s *credentials) setProvider(fs *pflag.FlagSet, user *clientcmdapi.AuthInfo) {
	if fs.Changed("auth-provider") && (user.AuthProvider == nil || user.AuthProvider.Name != s.provider) {
		user.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: s.provider}
	}
	if user.AuthProvider == nil {
		return
	}
	if user.AuthProvider.Config == nil {
		user.AuthProvider.Config = map[string]string{}
	}
	for _, pair := range s.providerArgs {
		key, value, removes := splitPair(pair)
		if user.AuthProvider.Config[key] = value; removes {
			delete(user.AuthProvider.Config, key)
		}
	}
}

// set changes what was given of the plugin that is there, or makes one. A new command has
// other arguments than the old one.
func (e *execPlugin) set(fs *pflag.FlagSet, user *clientcmdapi.AuthInfo) {
	if e.command != "" && user.Exec == nil {
		user.Exec = &clientcmdapi.ExecConfig{APIVersion: e.version, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode}
	}
	plugin := user.Exec
	if plugin == nil {
		return
	}
	if e.command != "" {
		plugin.Command, plugin.Args = e.command, nil
	}
	if fs.Changed("exec-api-version") {
		plugin.APIVersion = e.version
	}
	if len(e.args) > 0 {
		plugin.Args = e.args
	}
	if e.mode != "" {
		plugin.InteractiveMode = clientcmdapi.ExecInteractiveMode(e.mode)
	}
	if fs.Changed("exec-provide-cluster-info") {
		plugin.ProvideClusterInfo = e.clusterInfo
	}
	for _, pair := range e.env {
		key, value, removes := splitPair(pair)
		at := slices.IndexFunc(plugin.Env, func(v clientcmdapi.ExecEnvVar) bool { return v.Name == key })
		switch {
		case removes && at >= 0:
			plugin.Env = slices.Delete(plugin.Env, at, at+1)
		case removes:
		case at >= 0:
			plugin.Env[at].Value = value
		default:
			plugin.Env = append(plugin.Env, clientcmdapi.ExecEnvVar{Name: key, Value: value})
		}
	}
}
