package webhookclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/proto/rest"
)

// Access is how Clients reach webhooks, and what they show to them.
type Access struct {
	Services Services
	// Credentials are shown to webhooks that ask for them; nil for none.
	Credentials *Credentials
	// Itself connects to this server, as a user who may do anything; nil for not at all.
	// Webhooks may be served by the extension servers behind it.
	Itself func(ctx context.Context, network, address string) (net.Conn, error)
}

// isItself reports whether a webhook is served by an extension server: through this server,
// which is always called by this name, whatever the endpoints of the service.
func isItself(s *admissionregistrationv1.ServiceReference, path string) bool {
	return s != nil && s.Namespace == "default" && s.Name == "kubernetes" && port(s) == httpsPort && strings.HasPrefix(path, "/apis/")
}

// Credentials are how the server proves to webhooks who it is (Kubernetes docs, "Dynamic
// Admission Control", "Authenticate API servers"). A nil Credentials has none.
type Credentials struct {
	users   map[string]*rest.Config
	tls     map[*rest.Config]*tls.Config // one for all webhooks, so that what is wrong with it is told once
	current string
}

// LoadCredentials reads a kubeconfig whose users are named after webhooks: HOST:PORT or,
// for port 443, HOST, where "*." stands for any first parts of the name, and "*" for every
// webhook. A service's host is NAME.NAMESPACE.svc. onProblem hears of what is wrong with
// certificates later on.
func LoadCredentials(kubeconfig string, onProblem func(error)) (*Credentials, error) {
	users, current, err := rest.LoadUsers(kubeconfig)
	if err != nil {
		return nil, err
	}
	c := &Credentials{users: users, tls: make(map[*rest.Config]*tls.Config, len(users)), current: current}
	for name, user := range users {
		user.OnFileProblem = onProblem
		if c.tls[user], err = user.TLS(); err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", kubeconfig, name, err)
		}
	}
	return c, nil
}

// tlsOf is the TLS configuration, for its caller to change, that shows what of has returned.
func (c *Credentials) tlsOf(user *rest.Config) (*tls.Config, error) {
	if c != nil && c.tls[user] != nil {
		return c.tls[user].Clone(), nil
	}
	return user.TLS()
}

// of returns what is shown to a webhook: the longest name that fits decides, and a name
// with a port before any without.
func (c *Credentials) of(host, port string) *rest.Config {
	nobody := &rest.Config{}
	if c == nil {
		return nobody
	}
	names := fitting(net.JoinHostPort(host, port))
	if port == "443" {
		names = append(names, fitting(host)...)
	}
	for _, name := range append(names, "*", c.current) {
		if user, ok := c.users[name]; ok {
			return user
		}
	}
	return nobody
}

// fitting are the names that stand for an address, with and without "*.".
func fitting(address string) []string {
	names := []string{address}
	for rest, found := address, true; ; {
		if _, rest, found = strings.Cut(rest, "."); !found {
			return names
		}
		names = append(names, "*."+rest)
	}
}
