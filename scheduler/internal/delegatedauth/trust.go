package delegatedauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/proto/clientauth"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// What an API server publishes in kube-system of how it recognises clients. Lists are JSON.
const (
	configMap   = "extension-apiserver-authentication"
	keyClients  = "client-ca-file"
	keyProxies  = "requestheader-client-ca-file"
	keyNames    = "requestheader-allowed-names"
	keyUsername = "requestheader-username-headers"
	keyUID      = "requestheader-uid-headers"
	keyGroup    = "requestheader-group-headers"
	keyExtra    = "requestheader-extra-headers-prefix"
)

// trusted is one kind of certificate that clients may show, and by whom it must be signed. It
// changes as a whole, so that no request sees the authorities of one version and the names of another.
type trusted struct{ current atomic.Pointer[version] }

type version struct {
	authorities  *pki.Authorities
	authenticate func(r *http.Request) (*authenticationv1.UserInfo, bool, error)
}

// PEM is the authorities' certificates; none as long as there are none.
func (t *trusted) PEM() []byte {
	if v := t.current.Load(); v != nil {
		return v.authorities.PEM()
	}
	return nil
}

// Authenticate implements authenticator.
func (t *trusted) Authenticate(r *http.Request) (*authenticationv1.UserInfo, bool, error) {
	if v := t.current.Load(); v != nil {
		return v.authenticate(r)
	}
	return nil, false, nil
}

// trust is whose certificates are taken: those of the authorities in files, or in the ConfigMap
// where no file is named.
type trust struct {
	clients, proxies             trusted
	lookUpClients, lookUpProxies bool
	seen                         map[string]string // the ConfigMap's data; owned by the watch, once it runs

	clock  clock.Clock
	logger *zap.Logger
}

func newTrust(o *Options, clock clock.Clock, logger *zap.Logger) (*trust, error) {
	t := &trust{
		lookUpClients: o.ClientCAFile == "" && !o.SkipLookup,
		lookUpProxies: o.ProxyCAFile == "" && !o.SkipLookup,
		clock:         clock,
		logger:        logger,
	}
	clients, err := daemon.ClientAuthorities("--client-ca-file", o.ClientCAFile, clock, logger)
	if err != nil {
		return nil, err
	}
	proxies, err := daemon.ClientAuthorities("--requestheader-client-ca-file", o.ProxyCAFile, clock, logger)
	if err != nil {
		return nil, err
	}
	if clients != nil {
		t.takeClients(clients)
	}
	if proxies != nil {
		t.takeProxies(proxies, o.AllowedNames, o.Headers)
	}
	return t, nil
}

func (t *trust) takeClients(authorities *pki.Authorities) {
	verifier := clientauth.NewVerifier(authorities, t.clock, clientauth.UserOf)
	t.clients.current.Store(&version{authorities, func(r *http.Request) (*authenticationv1.UserInfo, bool, error) {
		user, err := verifier.Verify(r)
		return user, user != nil, err
	}})
}

func (t *trust) takeProxies(authorities *pki.Authorities, allowed []string, headers clientauth.HeaderNames) {
	t.proxies.current.Store(&version{authorities, clientauth.NewRequestHeader(authorities, allowed, headers, t.clock).Authenticate})
}

// lookUp reports whether anything is in the ConfigMap's hands.
func (t *trust) lookUp() bool { return t.lookUpClients || t.lookUpProxies }

// lookupTimeout bounds how long an API server that does not answer delays the start.
const lookupTimeout = 10 * time.Second

// read takes what the ConfigMap says now. There need not be one, as upstream has it.
func (t *trust) read(ctx context.Context, client *rest.Client) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	object := &core.ConfigMap{}
	err := client.Resource(core.ConfigMaps, core.NamespaceSystem).Get(ctx, configMap, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (the Role extension-apiserver-authentication-reader in kube-system grants it)", err)
	case err != nil:
		return err
	}
	return t.take(object)
}

// follow takes what the ConfigMap says from now on, until ctx ends.
func (t *trust) follow(ctx context.Context, client *rest.Client) error {
	return watch.NewReflector(client.Resource(core.ConfigMaps, core.NamespaceSystem), func() *core.ConfigMap { return &core.ConfigMap{} }, t,
		watch.Options{FieldSelector: "metadata.name=" + configMap, Clock: t.clock, Logger: t.logger}).Run(ctx)
}

// Replace implements watch.Sink.
func (t *trust) Replace(items []*core.ConfigMap) {
	for _, object := range items {
		t.Apply(watch.Modified, object)
	}
}

// Apply implements watch.Sink. One that is deleted, or that can't be read, takes no trust away:
// who deletes it by mistake must not lock everybody out.
func (t *trust) Apply(what watch.Type, object *core.ConfigMap) {
	if what == watch.Deleted || object.Name != configMap {
		return
	}
	if err := t.take(object); err != nil {
		t.logger.Error("authorities of the cluster's clients or proxies can't be read, the previous ones stay in use", zap.Error(err))
	}
}

// take takes the authorities of clients and of proxies, each if it can be read.
func (t *trust) take(object *core.ConfigMap) error {
	data := object.Data
	if maps.Equal(data, t.seen) { // the verifiers' caches stay
		return nil
	}
	t.seen = data
	var errs []error
	if pem := data[keyClients]; t.lookUpClients && pem != "" && pem != string(t.clients.PEM()) {
		authorities, err := pki.FixedAuthorities(keyClients, []byte(pem))
		if err == nil {
			t.takeClients(authorities)
		}
		errs = append(errs, err)
	}
	if t.lookUpProxies && data[keyProxies] != "" {
		errs = append(errs, t.takeProxiesOf(data))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("configmaps %q in %s: %w", configMap, core.NamespaceSystem, err)
	}
	return nil
}

func (t *trust) takeProxiesOf(data map[string]string) error {
	var allowed []string
	var headers clientauth.HeaderNames
	for key, list := range map[string]*[]string{
		keyNames: &allowed, keyUsername: &headers.Username, keyUID: &headers.UID, keyGroup: &headers.Group, keyExtra: &headers.ExtraPrefix,
	} {
		if data[key] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data[key]), list); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	authorities, err := pki.FixedAuthorities(keyProxies, []byte(data[keyProxies]))
	if err != nil {
		return err
	}
	t.takeProxies(authorities, allowed, headers)
	return nil
}
