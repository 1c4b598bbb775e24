package rest

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/proto/pki"
)

// kubeconfig is the file format (Kubernetes docs, "Organizing Cluster Access
// Using kubeconfig Files"), as far as daemons need it.
type kubeconfig struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	CurrentContext string `json:"current-context"`
	Clusters       []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server     string `json:"server"`
			CAFile     string `json:"certificate-authority"`
			CAData     []byte `json:"certificate-authority-data"`
			Insecure   bool   `json:"insecure-skip-tls-verify"`
			ServerName string `json:"tls-server-name"`
			ProxyURL   string `json:"proxy-url"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string         `json:"name"`
		User kubeconfigUser `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster   string `json:"cluster"`
			User      string `json:"user"`
			Namespace string `json:"namespace"`
		} `json:"context"`
	} `json:"contexts"`
}

// kubeconfigUser is how a user of a kubeconfig proves who it is.
type kubeconfigUser struct {
	CertFile     string `json:"client-certificate"`
	CertData     []byte `json:"client-certificate-data"`
	KeyFile      string `json:"client-key"`
	KeyData      []byte `json:"client-key-data"`
	Token        string `json:"token"`
	TokenFile    string `json:"tokenFile"`
	Username     string `json:"username"`
	Password     string `json:"password"`
	AuthProvider any    `json:"auth-provider"`
	Exec         any    `json:"exec"`
	Impersonate  string `json:"as"`
	// What further describes whom to impersonate; nothing without that.
	ImpersonateUID    string              `json:"as-uid"`
	ImpersonateGroups []string            `json:"as-groups"`
	ImpersonateExtra  map[string][]string `json:"as-user-extra"`
}

func (u *kubeconfigUser) impersonates() bool {
	return u.Impersonate+u.ImpersonateUID != "" || len(u.ImpersonateGroups)+len(u.ImpersonateExtra) > 0
}

// LoadKubeconfig reads one kubeconfig file and returns what its current
// context says. Relative file names in it are relative to the file. What a
// daemon can't do (exec plugins, auth providers, impersonation, proxies) is an
// error that names it.
func LoadKubeconfig(path string) (*Config, error) { return loadContext(path, "") }

// loadContext returns what a context of a kubeconfig says, or the current one.
func loadContext(path, context string) (*Config, error) {
	k, err := readKubeconfig(path)
	if err != nil {
		return nil, err
	}
	if context != "" {
		k.CurrentContext = context
	}
	cfg, err := k.config(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	cfg.kubeconfig = origin{path: path, context: k.CurrentContext, server: cfg.Host}
	return cfg, nil
}

func readKubeconfig(path string) (*kubeconfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	k := &kubeconfig{}
	if err := yaml.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if k.Kind != "" && k.Kind != "Config" {
		return nil, fmt.Errorf("kubeconfig %s: kind is %q, want Config", path, k.Kind)
	}
	return k, nil
}

// LoadUsers reads the credentials of all users in a kubeconfig, by their names, and the
// name of its current context's user, "" for none. The Configs name no server. Unlike
// those of LoadKubeconfig, certificates and tokens within the file are read once.
func LoadUsers(path string) (users map[string]*Config, current string, err error) {
	k, err := readKubeconfig(path)
	if err != nil {
		return nil, "", err
	}
	users = make(map[string]*Config, len(k.Users))
	for _, u := range k.Users {
		cfg := &Config{}
		if err := k.user(cfg, u.Name, filepath.Dir(path)); err != nil {
			return nil, "", fmt.Errorf("kubeconfig %s: %w", path, err)
		}
		users[u.Name] = cfg
	}
	for _, c := range k.Contexts {
		if c.Name == k.CurrentContext {
			current = c.Context.User
		}
	}
	return users, current, nil
}

// origin is what of a kubeconfig a Config is from.
type origin struct{ path, context, server string }

// kubeconfigFile is a kubeconfig that may be rewritten while the program runs.
type kubeconfigFile struct {
	origin

	mu         sync.Mutex
	modified   time.Time // of the file, when it was read last
	newest     *Config   // the newest content that could be read
	complaints pki.Complaints
}

func newKubeconfigFile(cfg *Config) *kubeconfigFile {
	return &kubeconfigFile{origin: cfg.kubeconfig, newest: cfg, complaints: pki.Complaints{To: cfg.OnFileProblem}}
}

// current is the newest content. A file that can't be read leaves the old in use, and so
// does one that names another server: what it says of that is not for ours. Which context
// is current by now does not matter.
func (f *kubeconfigFile) current() *Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complaints.AboutReload(f.load())
	return f.newest
}

func (f *kubeconfigFile) load() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if info.ModTime().Equal(f.modified) {
		return nil
	}
	cfg, err := loadContext(f.path, f.context)
	if err != nil {
		return err
	}
	f.modified = info.ModTime()
	if cfg.kubeconfig != f.origin {
		return fmt.Errorf("kubeconfig %s names another server%s", f.path, cfg.server())
	}
	f.newest = cfg
	return nil
}

// server names the server, without what may be a password before it.
func (cfg *Config) server() string {
	u, err := cfg.baseURL()
	if err != nil {
		return ""
	}
	u.User = nil
	return ", " + u.String()
}

// kubeconfigCertificate is a client certificate inside a kubeconfig: connections
// made after the file was rewritten present the new one.
type kubeconfigCertificate struct {
	file  *kubeconfigFile
	clock clock.PassiveClock

	mu         sync.Mutex
	read       *Config // what cert is from
	cert       *tls.Certificate
	complaints pki.Complaints
}

func (i *kubeconfigCertificate) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := i.file.current(); now != i.read {
		i.take(now)
	}
	i.complaints.AboutCertificate("client certificate in kubeconfig "+i.file.path, i.cert.Leaf, i.clock.Now())
	return i.cert, nil
}

func (i *kubeconfigCertificate) take(newest *Config) {
	cert, err := newest.pair()
	switch {
	case err != nil:
		err = fmt.Errorf("kubeconfig %s: %w", i.file.path, err)
	case cert == nil:
		err = fmt.Errorf("kubeconfig %s: it contains no client certificate", i.file.path)
	default:
		i.read, i.cert = newest, cert
	}
	i.complaints.AboutReload(err)
}

func (k *kubeconfig) config(dir string) (*Config, error) {
	if k.CurrentContext == "" {
		return nil, fmt.Errorf("no current-context")
	}
	for _, c := range k.Contexts {
		if c.Name != k.CurrentContext {
			continue
		}
		cfg := &Config{Namespace: c.Context.Namespace}
		if err := k.cluster(cfg, c.Context.Cluster, dir); err != nil {
			return nil, err
		}
		if err := k.user(cfg, c.Context.User, dir); err != nil {
			return nil, err
		}
		return cfg, nil
	}
	return nil, fmt.Errorf("current-context %q does not exist in the file", k.CurrentContext)
}

func (k *kubeconfig) cluster(cfg *Config, name, dir string) error {
	for _, c := range k.Clusters {
		if c.Name != name {
			continue
		}
		if c.Cluster.ProxyURL != "" {
			return fmt.Errorf("cluster %q: proxy-url is not supported here", name)
		}
		cfg.Host = c.Cluster.Server
		cfg.CAFile = relativeTo(dir, c.Cluster.CAFile)
		cfg.CAData = c.Cluster.CAData
		cfg.Insecure = c.Cluster.Insecure
		cfg.ServerName = c.Cluster.ServerName
		return nil
	}
	return fmt.Errorf("cluster %q does not exist in the file", name)
}

func (k *kubeconfig) user(cfg *Config, name, dir string) error {
	if name == "" {
		return nil
	}
	for _, u := range k.Users {
		if u.Name != name {
			continue
		}
		switch {
		case u.User.Exec != nil:
			return fmt.Errorf("user %q: exec credential plugins are not supported here", name)
		case u.User.AuthProvider != nil:
			return fmt.Errorf("user %q: auth-provider is not supported", name)
		case u.User.impersonates():
			return fmt.Errorf("user %q: impersonation (as) is not supported here", name)
		case u.User.Username+u.User.Password != "" && u.User.Token+u.User.TokenFile != "":
			return fmt.Errorf("user %q: use either username and password or a token, not both", name)
		}
		cfg.CertFile = relativeTo(dir, u.User.CertFile)
		cfg.KeyFile = relativeTo(dir, u.User.KeyFile)
		cfg.CertData, cfg.KeyData = u.User.CertData, u.User.KeyData
		cfg.Username, cfg.Password = u.User.Username, u.User.Password
		cfg.BearerToken = u.User.Token
		cfg.BearerTokenFile = relativeTo(dir, u.User.TokenFile)
		return nil
	}
	return fmt.Errorf("user %q does not exist in the file", name)
}

func relativeTo(dir, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}
