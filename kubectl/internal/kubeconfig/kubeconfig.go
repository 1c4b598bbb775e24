package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/shell"
	"kctl/proto/rest"
)

// ErrNone says that nothing names a cluster.
var ErrNone = errors.New("no cluster is configured: neither --server, --kubeconfig, $KUBECONFIG nor ~/.kube/config names one")

// Places are where a cluster on this machine has its kubeconfig: one of `kctl up`, or
// of the systemd units.
var Places = []string{"/var/lib/kctl/admin.kubeconfig", "/etc/kctl/admin.kubeconfig"}

// toHave says how to get a kubeconfig on this machine.
func toHave() string {
	if at := slices.IndexFunc(Places, exists); at >= 0 {
		return fmt.Sprintf(`"export KUBECONFIG=%s" chooses the one on this machine`, Places[at])
	}
	return `"kctl up" starts one on this machine`
}

// Flags are the flags that say which cluster, user and namespace are meant.
type Flags struct {
	File      string
	Namespace string
	Timeout   time.Duration
	// Plugins says which credential plugins of kubeconfigs may run.
	Plugins clientcmdapi.PluginPolicy

	overrides    clientcmd.ConfigOverrides
	asGroups     []string
	as, asUID    string
	asExtra      map[string][]string
	cacheDir     string
	uncompressed bool
}

// Add adds the flags to a set.
func (f *Flags) Add(fs *pflag.FlagSet) {
	o := &f.overrides
	fs.StringVar(&f.File, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	fs.StringVarP(&f.Namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request")
	fs.StringVar(&o.CurrentContext, "context", "", "The name of the kubeconfig context to use")
	fs.StringVar(&o.Context.Cluster, "cluster", "", "The name of the kubeconfig cluster to use")
	fs.StringVar(&o.Context.AuthInfo, "user", "", "The name of the kubeconfig user to use")
	fs.StringVarP(&o.ClusterInfo.Server, "server", "s", "", "The address and port of the Kubernetes API server")
	fs.StringVar(&o.ClusterInfo.TLSServerName, "tls-server-name", "", "Server name to use for server certificate validation")
	fs.StringVar(&o.ClusterInfo.CertificateAuthority, "certificate-authority", "", "Path to a cert file for the certificate authority")
	fs.BoolVar(&o.ClusterInfo.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false,
		"If true, the server's certificate will not be checked for validity")
	fs.StringVar(&o.AuthInfo.Token, "token", "", "Bearer token for authentication to the API server")
	fs.StringVar(&o.AuthInfo.ClientCertificate, "client-certificate", "", "Path to a client certificate file for TLS")
	fs.StringVar(&o.AuthInfo.ClientKey, "client-key", "", "Path to a client key file for TLS")
	fs.StringVar(&f.as, "as", "", "Username to impersonate for the operation")
	fs.StringArrayVar(&f.asGroups, "as-group", nil, "Group to impersonate for the operation, may be repeated")
	fs.StringVar(&f.asUID, "as-uid", "", "UID to impersonate for the operation")
	fs.Func("as-user-extra", "User extras to impersonate for the operation, as KEY=VALUE, may be repeated", f.addExtra)
	fs.StringVar(&o.ClusterInfo.ProxyURL, "proxy-url", "", "Proxy URL to use for requests to the API server")
	fs.StringVar(&o.AuthInfo.Username, "username", "", "Username for basic authentication to the API server")
	fs.StringVar(&o.AuthInfo.Password, "password", "", "Password for basic authentication to the API server")
	fs.BoolVar(&f.uncompressed, "disable-compression", true, "If false, ask the server for compressed answers")
	fs.Var((*secondsValue)(&f.Timeout), "request-timeout",
		"The length of time to wait before giving up on a single server request, as 5s, 2m or a number of seconds. Zero means no timeout.")
	fs.StringVar(&f.cacheDir, "cache-dir", "", "Cache directory (default ~/.kube/cache)")
}

// addExtra notes one of the extras to impersonate.
func (f *Flags) addExtra(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not KEY=VALUE", text)
	}
	if f.asExtra == nil {
		f.asExtra = map[string][]string{}
	}
	f.asExtra[key] = append(f.asExtra[key], value)
	return nil
}

// secondsValue is a duration that may be given as a bare number of seconds.
type secondsValue time.Duration

func (s *secondsValue) String() string { return time.Duration(*s).String() }
func (s *secondsValue) Type() string   { return "duration" }

func (s *secondsValue) Set(text string) error {
	if number, err := strconv.Atoi(text); err == nil {
		text = strconv.Itoa(number) + "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		//nolint:staticcheck // kubectl's words
		return errors.New("Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding " +
			"time unit (e.g. 1s | 2m | 3h)")
	}
	if parsed < 0 {
		return fmt.Errorf("%s is negative", text)
	}
	*s = secondsValue(parsed)
	return nil
}

// Target is where requests go, and as whom.
type Target struct {
	Client    *clientrest.Config // for upgraded connections
	Namespace string
	// Chosen tells that the namespace was asked for by flag.
	Chosen bool
	// File is the kubeconfig that names the cluster; "" where a flag does.
	File string
}

// At is the same user at another server of the cluster. If the API server is
// not verified, or the other is asked in clear text, that is not sent the user's secrets.
func (t *Target) At(host string) *Target {
	other := *t
	other.Client = clientrest.CopyConfig(t.Client)
	other.Client.Host, other.Client.ServerName = host, ""
	address, _, err := clientrest.DefaultServerUrlFor(other.Client)
	if t.Client.Insecure || err != nil || address.Scheme != "https" {
		other.Client.BearerToken, other.Client.BearerTokenFile, other.Client.Username, other.Client.Password = "", "", "", ""
		other.Client.ExecProvider, other.Client.AuthProvider = nil, nil // which would get one
	}
	return &other
}

// noClusterError says why no cluster is named: the context that is to be used may name one
// that the files do not have.
func (f *Flags) noClusterError(loader clientcmd.ClientConfig) error {
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("%w (%s)", ErrNone, toHave())
	}
	name := cmp.Or(f.overrides.CurrentContext, raw.CurrentContext)
	if chosen, ok := raw.Contexts[name]; ok && chosen.Cluster != "" && raw.Clusters[chosen.Cluster] == nil {
		return fmt.Errorf("the kubeconfig's context %q is of cluster %q, which the kubeconfig does not have", name, chosen.Cluster)
	}
	if name == "" && len(raw.Contexts) > 0 {
		known := slices.Sorted(maps.Keys(raw.Contexts))
		return fmt.Errorf("the kubeconfig has no current context (\"kctl config use-context %s\" chooses one, \"kctl "+
			"config get-contexts\" lists all)", shell.Word(known[0]))
	}
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" && f.File == "" &&
		!slices.ContainsFunc(filepath.SplitList(files), exists) {
		return fmt.Errorf("%w: $KUBECONFIG is %s, and there is no such file (%s)", ErrNone, files, toHave())
	}
	return fmt.Errorf("%w (%s)", ErrNone, toHave())
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// wrongContext adds advice to an error about a current context that does not
// exist.
func (f *Flags) wrongContext(loader clientcmd.ClientConfig, err error) error {
	raw, unread := loader.RawConfig()
	if unread != nil || !clientcmd.IsContextNotFound(err) || f.overrides.CurrentContext != "" {
		return err
	}
	return fmt.Errorf(`context was not found for specified context: %s ("kctl config get-contexts" lists those that there are)`,
		raw.CurrentContext)
}

// Load works out the target.
func (f *Flags) Load() (*Target, error) {
	loader := f.loader()
	if err := f.chosenIn(loader); err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, f.noClusterError(loader)
		}
		return nil, f.wrongContext(loader, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if config.ExecProvider != nil {
		config.ExecProvider.PluginPolicy = f.Plugins
	}
	f.impersonate(&config.Impersonate)
	config.DisableCompression = f.uncompressed // on loopback and in data centres copying is cheaper
	target := &Target{Client: config, Namespace: namespace, Chosen: f.Namespace != "", File: f.file(loader)}
	if f.Namespace != "" {
		target.Namespace = f.Namespace
	}
	return target, nil
}

// impersonate puts the flags over what the kubeconfig says of the same: each by itself, and
// extras by their keys.
func (f *Flags) impersonate(who *clientrest.ImpersonationConfig) {
	who.UserName = cmp.Or(f.as, who.UserName)
	who.UID = cmp.Or(f.asUID, who.UID)
	if len(f.asGroups) > 0 {
		who.Groups = f.asGroups
	}
	if len(f.asExtra) > 0 {
		extra := maps.Clone(f.asExtra)
		for key, values := range who.Extra {
			if _, given := extra[key]; !given {
				extra[key] = values
			}
		}
		who.Extra = extra
	}
}

// chosenIn refuses a requested context or cluster that does not exist.
func (f *Flags) chosenIn(loader clientcmd.ClientConfig) error {
	raw, err := loader.RawConfig()
	if err != nil {
		return err // says the file
	}
	if name := f.overrides.CurrentContext; name != "" && raw.Contexts[name] == nil {
		return fmt.Errorf("context was not found for specified context: %s", name)
	}
	if name := f.overrides.Context.Cluster; name != "" && raw.Clusters[name] == nil {
		return fmt.Errorf("no server found for cluster %q", name)
	}
	return nil
}

// file is the kubeconfig that names the cluster which is used.
func (f *Flags) file(loader clientcmd.ClientConfig) string {
	raw, err := loader.RawConfig()
	if err != nil || f.overrides.ClusterInfo.Server != "" {
		return ""
	}
	name := f.overrides.Context.Cluster
	if name == "" {
		context := raw.Contexts[cmp.Or(f.overrides.CurrentContext, raw.CurrentContext)]
		if context == nil {
			return ""
		}
		name = context.Cluster
	}
	if cluster := raw.Clusters[name]; cluster != nil {
		return cluster.LocationOfOrigin
	}
	return ""
}

func (f *Flags) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules(), &f.overrides)
}

// Files are the kubeconfig files as the verbs see them that show and change them: paths in
// them stay as they are, and of flags only --kubeconfig counts.
func (f *Flags) Files() *clientcmd.PathOptions {
	files := clientcmd.NewDefaultPathOptions()
	files.LoadingRules.ExplicitPath = f.File
	files.LoadingRules.WarnIfAllMissing = false
	return files
}

// rules say where kubeconfigs are read from.
func (f *Flags) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.File
	rules.WarnIfAllMissing = false
	return rules
}

// Rest makes the project's client for the target. wrap, if not nil, is put
// around the transport.
func (t *Target) Rest(wrap func(http.RoundTripper) http.RoundTripper) (*rest.Client, error) {
	config := clientrest.CopyConfig(t.Client)
	transport, err := clientrest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if wrap != nil {
		transport = wrap(transport)
	}
	host, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: server %q: %w", config.Host, err)
	}
	return rest.New(&rest.Config{Host: host.String(), UserAgent: config.UserAgent, Timeout: config.Timeout, Transport: transport})
}
