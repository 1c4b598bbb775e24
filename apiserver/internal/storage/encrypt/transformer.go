package encrypt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/scheme"
)

// sealedPrefix begins every sealed value.
const sealedPrefix = "k8s:enc:"

// Transformer seals and opens the values of a store by a configuration that may
// be replaced at any time. It is safe for concurrent use.
type Transformer struct {
	clock   clock.WithTicker
	logger  *zap.Logger
	metrics *metrics
	file    configfile.Follower

	current atomic.Pointer[generation]

	mu       sync.RWMutex
	prefixes map[string]schema.GroupResource // by prefix of keys
}

// generation is one configuration in use.
type generation struct {
	// providers are those of each name in the configuration.
	providers map[string][]provider
	kms       []*kms
	end       context.CancelFunc // of KMS calls
}

// provider is a sealer with the prefix of its values; "" for values stored in
// plain text.
type provider struct {
	prefix string
	labels []string // in metrics
	sealer sealer
}

// New reads the configuration in file. RegisterPrefix then tells it which keys belong to
// which resource.
func New(ctx context.Context, file string, clock clock.WithTicker, registry prometheus.Registerer,
	logger *zap.Logger) (*Transformer, error) {
	content, err := configfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration: %w", err)
	}
	t := &Transformer{clock: clock, logger: logger, metrics: newMetrics(registry), prefixes: map[string]schema.GroupResource{}}
	first, err := t.generation(ctx, file, content)
	if err != nil {
		return nil, err
	}
	t.current.Store(first)
	t.file = configfile.Follower{
		Path: file, Content: content, Every: reloadInterval, Clock: clock, Logger: logger,
		Metrics: configfile.NewMetrics("encryption", content, registry),
	}
	return t, nil
}

// RegisterPrefix declares that the keys that begin with prefix belong to a resource.
func (t *Transformer) RegisterPrefix(prefix, group, resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefixes[prefix] = schema.GroupResource{Group: group, Resource: resource}
}

func (t *Transformer) generation(ctx context.Context, file string, content []byte) (*generation, error) {
	config, err := parse(file, content)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	g := &generation{providers: map[string][]provider{}, end: end}
	for _, r := range config.Resources {
		var made []provider
		for _, p := range r.Providers {
			providers, err := t.providers(ctx, g, p)
			if err != nil {
				end()
				return nil, err
			}
			made = append(made, providers...)
		}
		for _, name := range r.Resources { // which an earlier entry may have named, too
			g.providers[name] = append(g.providers[name], made...)
		}
	}
	return g, nil
}

func (t *Transformer) providers(ctx context.Context, g *generation, p providerConfiguration) ([]provider, error) {
	local := func(kind string, k *keys) ([]provider, error) {
		var out []provider
		for _, key := range k.Keys {
			s, err := newLocal(kind, key.Secret)
			if err != nil {
				return nil, fmt.Errorf("%s key %s: %w", kind, key.Name, err)
			}
			of, named := sealedPrefix+kind+":v1:", key.Name+":"
			out = append(out, provider{prefix: of + named, labels: []string{of, named}, sealer: s})
		}
		return out, nil
	}
	switch {
	case p.AESGCM != nil:
		return local("aesgcm", p.AESGCM)
	case p.AESCBC != nil:
		return local("aescbc", p.AESCBC)
	case p.Secretbox != nil:
		return local("secretbox", p.Secretbox)
	case p.KMS != nil:
		k, err := newKMS(ctx, p.KMS, t.clock, t.metrics, t.logger)
		if err != nil {
			return nil, err
		}
		g.kms = append(g.kms, k)
		prefix := sealedPrefix + "kms:v2:" + p.KMS.Name + ":"
		return []provider{{prefix: prefix, labels: []string{prefix}, sealer: k}}, nil
	}
	return []provider{{}}, nil
}

// providersOf returns the providers for a resource.
func (g *generation) providersOf(of schema.GroupResource) []provider {
	for _, name := range []string{of.String(), "*." + of.Group, "*.*"} {
		if found, ok := g.providers[name]; ok {
			return found
		}
	}
	return nil
}

// resourceOf finds the resource that a key belongs to, by the longest claimed prefix.
func (t *Transformer) resourceOf(key string) (found schema.GroupResource, claimed bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for end := len(key); end > 0; end = strings.LastIndexByte(key[:end-1], '/') + 1 {
		if found, ok := t.prefixes[key[:end]]; ok {
			return found, true
		}
	}
	return schema.GroupResource{}, false
}

// Seal returns plain in the form in which it is stored under key. What belongs to no resource
// (addresses of servers, node ports in use) is never encrypted: kube-apiserver, which shares
// it, reads and writes it in plain text even where all resources ('*.*') are.
func (t *Transformer) Seal(ctx context.Context, key string, plain []byte) ([]byte, error) {
	of, claimed := t.resourceOf(key)
	providers := t.current.Load().providersOf(of)
	if len(providers) == 0 || !claimed {
		return plain, nil
	}
	first := providers[0]
	if first.sealer == nil {
		t.metrics.transformed(of, toStorage, identityLabels[toStorage], 0, nil)
		return plain, nil
	}
	began := t.clock.Now()
	sealed, err := first.sealer.seal(ctx, []byte(key), plain)
	t.metrics.transformed(of, toStorage, first.labels, t.clock.Since(began), err)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return append([]byte(first.prefix), sealed...), nil
}

// identityLabels are upstream's for values that are stored as they are, by direction.
var identityLabels = map[string][]string{toStorage: {""}, fromStorage: {"identity"}}

// unknownLabels are upstream's for values that no provider may be able to open: if their key is lost,
// and not their kind of provider, the kind is the first.
func unknownLabels(providers []provider, stored []byte) []string {
	const unknown = "unknown"
	for _, p := range providers {
		if len(p.labels) > 1 && bytes.HasPrefix(stored, []byte(p.labels[0])) {
			return []string{p.labels[0], unknown}
		}
	}
	return []string{unknown}
}

// Open returns what was given to Seal. stale: it would be sealed differently
// today, so an update should write the object even if it has not changed.
func (t *Transformer) Open(ctx context.Context, key string, stored []byte) (plain []byte, stale bool, err error) {
	of, claimed := t.resourceOf(key)
	providers := t.current.Load().providersOf(of)
	sealed := bytes.HasPrefix(stored, []byte(sealedPrefix))
	if !sealed && (len(providers) == 0 || !claimed) {
		return stored, false, nil
	}
	began := t.clock.Now()
	plain, stale, labels, err := open(ctx, providers, key, stored, sealed)
	if claimed { // others are not waited for: their definition is gone, or not read yet
		t.metrics.transformed(of, fromStorage, labels, t.clock.Since(began), err)
	}
	if err != nil {
		return nil, false, fmt.Errorf("decrypt: %w", err)
	}
	return plain, stale, nil
}

// isObject reports whether a value is an object as this server or kube-apiserver stores it. One
// of 256 values that AES-CBC opens with a wrong key seems to be opened, and is not.
func isObject(plain []byte) bool {
	return json.Valid(plain) || bytes.HasPrefix(plain, []byte(scheme.ProtobufPrefix))
}

// anyOpens reports whether one of the providers may be able to open the value.
func anyOpens(providers []provider, stored []byte) bool {
	return slices.ContainsFunc(providers, func(p provider) bool { return p.sealer != nil && bytes.HasPrefix(stored, []byte(p.prefix)) })
}

// open tries each provider whose prefix the value has: several keys may have one name, and
// the name of one may begin with that of another and a colon. labels are those of the last.
func open(ctx context.Context, providers []provider, key string, stored []byte,
	sealed bool) (plain []byte, stale bool, labels []string, err error) {
	var errs []error
	for i, p := range providers {
		if p.sealer == nil {
			if !sealed {
				return stored, i > 0, identityLabels[fromStorage], nil
			}
			continue
		}
		text, ok := bytes.CutPrefix(stored, []byte(p.prefix))
		if !ok {
			continue
		}
		labels = p.labels
		plain, stale, err := p.sealer.open(ctx, []byte(key), text)
		if _, unsure := p.sealer.(cbc); err == nil && unsure && anyOpens(providers[i+1:], stored) && !isObject(plain) {
			err = errNotOpened
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("by %s: %w", strings.TrimSuffix(p.prefix, ":"), err))
			continue
		}
		return plain, stale || i > 0, labels, nil
	}
	switch {
	case len(errs) > 0:
		return nil, false, labels, errors.Join(errs...)
	case !sealed:
		return nil, false, unknownLabels(nil, stored),
			errors.New("the value is stored as it is, and the configuration has no provider identity for its resource")
	}
	return nil, false, unknownLabels(providers, stored),
		fmt.Errorf("no provider of the configuration has the key that the value was sealed with: %s", keyOf(stored))
}
