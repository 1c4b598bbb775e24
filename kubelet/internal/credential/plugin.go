package credential

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	pluginv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
)

// ServiceAccounts provides what a plugin may be told about a pod's service account.
type ServiceAccounts interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error)
	// Token is one that is bound to the pod, for the audience.
	Token(ctx context.Context, pod *core.Pod, audience string) (string, error)
}

// plugin is a program that is asked for the credentials of some images.
type plugin struct {
	kubeletv1.CredentialProvider
	path     string
	timeout  time.Duration
	clock    clock.PassiveClock
	accounts ServiceAccounts
	measure  measure

	mu      sync.Mutex
	running map[string]*run // by what is asked
	cache   map[string]answer
}

// answer is what a plugin said, until it expires.
type answer struct {
	known   []registryCredential
	expires time.Time
}

// measure is called after each run of a plugin.
type measure func(plugin string, took time.Duration, err error)

func newPlugin(p kubeletv1.CredentialProvider, binDir string, accounts ServiceAccounts, clock clock.PassiveClock, measure measure) *plugin {
	return &plugin{
		CredentialProvider: p, path: filepath.Join(binDir, p.Name), timeout: pluginTimeout, accounts: accounts, clock: clock, measure: measure,
		running: map[string]*run{}, cache: map[string]answer{},
	}
}

// lookup returns the plugin's credentials for a repository that a pod needs an image from.
func (p *plugin) lookup(ctx context.Context, pod *core.Pod, repository string) ([]Credential, error) {
	if !slices.ContainsFunc(p.MatchImages, func(pattern string) bool { return begins(pattern, repository) }) {
		return nil, nil
	}
	who, asks, err := p.identify(ctx, pod)
	if err != nil || !asks {
		return nil, err
	}
	known, kept := p.cached(who.key, repository)
	if !kept {
		if known, err = p.ask(ctx, who, repository); err != nil {
			return nil, err
		}
	}
	// Longer places before shorter ones, and those without wildcards before others.
	fit := fitting(known, func(place string) bool { return begins(place, repository) }, func(a, b string) int { return strings.Compare(b, a) })
	for i := range fit {
		fit[i].Account = who.account
	}
	return fit, nil
}

// identity is the service account on whose behalf a plugin is asked: none, unless it
// wants tokens.
type identity struct {
	key         string
	account     *Owner
	token       string
	annotations map[string]string
}

// identify tells on whose behalf the plugin is asked, and whether it is.
func (p *plugin) identify(ctx context.Context, pod *core.Pod) (who identity, asks bool, err error) {
	wants := p.TokenAttributes
	if wants == nil {
		return identity{}, true, nil
	}
	if pod.Spec.ServiceAccountName == "" || p.accounts == nil { // a static pod has none
		return identity{}, !*wants.RequireServiceAccount, nil
	}
	account, err := p.accounts.ServiceAccount(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return who, false, fmt.Errorf("service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	who.account = &Owner{UID: string(account.UID), Namespace: account.Namespace, Name: account.Name}
	who.annotations = map[string]string{}
	for _, key := range wants.RequiredServiceAccountAnnotationKeys {
		value, has := account.Annotations[key]
		if !has {
			return who, false, fmt.Errorf("service account %s lacks the annotation %s", account.Name, key)
		}
		who.annotations[key] = value
	}
	for _, key := range wants.OptionalServiceAccountAnnotationKeys {
		if value, has := account.Annotations[key]; has {
			who.annotations[key] = value
		}
	}
	if who.token, err = p.accounts.Token(ctx, pod, wants.ServiceAccountTokenAudience); err != nil {
		return who, false, fmt.Errorf("token of service account %s: %w", account.Name, err)
	}
	parts := []any{account.Namespace, account.Name, account.UID, who.annotations}
	if wants.CacheType == kubeletv1.TokenServiceAccountTokenCacheType {
		parts = append(parts, who.token)
	}
	who.key = cacheKey(parts...)
	return who, true, nil
}

// keysOf are the keys under which answers for a repository may be cached, the most
// specific first.
func keysOf(who, repository string) []string {
	host, _, _ := strings.Cut(repository, "/")
	return []string{
		cacheKey(who, pluginv1.ImagePluginCacheKeyType, repository), cacheKey(who, pluginv1.RegistryPluginCacheKeyType, host),
		cacheKey(who, pluginv1.GlobalPluginCacheKeyType),
	}
}

func (p *plugin) cached(who, repository string) ([]registryCredential, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keysOf(who, repository) {
		if a, ok := p.cache[key]; ok && !backoff.Passed(p.clock.Now(), a.expires) {
			return a.known, true
		}
	}
	return nil, false
}

// run is a run of a plugin in progress, which lasts as long as somebody waits for it.
type run struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed once the rest is there
	known   []registryCredential
	err     error
}

// ask runs the plugin, once for all callers with the same question, and caches
// the answer. When all callers have given up, it is killed.
func (p *plugin) ask(ctx context.Context, who identity, repository string) ([]registryCredential, error) {
	key := cacheKey(who.key, who.token, repository)
	r := p.join(ctx, key, func(ctx context.Context) ([]registryCredential, error) { return p.askOnce(ctx, who, repository) })
	select {
	case <-r.done:
		return r.known, r.err
	case <-ctx.Done():
		p.leave(key, r)
		return nil, ctx.Err()
	}
}

func (p *plugin) join(ctx context.Context, key string, ask func(context.Context) ([]registryCredential, error)) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.running[key]; r != nil {
		r.waiting++
		return r
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &run{waiting: 1, cancel: cancel, done: make(chan struct{})}
	p.running[key] = r
	go func() {
		defer cancel()
		r.known, r.err = ask(ctx)
		p.mu.Lock()
		p.drop(key, r)
		p.mu.Unlock()
		close(r.done)
	}()
	return r
}

func (p *plugin) leave(key string, r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.waiting--; r.waiting == 0 {
		r.cancel()
		p.drop(key, r) // the next caller starts another run
	}
}

// drop forgets a run unless another has taken its place. The caller holds p.mu.
func (p *plugin) drop(key string, r *run) {
	if p.running[key] == r {
		delete(p.running, key)
	}
}

func (p *plugin) askOnce(ctx context.Context, who identity, repository string) ([]registryCredential, error) {
	if known, kept := p.cached(who.key, repository); kept { // since we looked
		return known, nil
	}
	began := p.clock.Now()
	response, err := p.run(ctx, who, repository)
	p.measure(p.Name, p.clock.Since(began), err)
	if err != nil {
		return nil, err
	}
	var known []registryCredential
	for place, auth := range response.Auth {
		known = append(known, registryCredential{registry: place, Credential: Credential{Auth: &runtimeapi.AuthConfig{
			Username: auth.Username, Password: auth.Password,
		}}})
	}
	p.addToCache(who.key, repository, response, known)
	return known, nil
}

func (p *plugin) addToCache(who, repository string, response *pluginv1.CredentialProviderResponse, known []registryCredential) {
	lasts := p.DefaultCacheDuration.Duration
	if response.CacheDuration != nil {
		lasts = response.CacheDuration.Duration
	}
	if lasts <= 0 {
		return
	}
	keys, now := keysOf(who, repository), p.clock.Now()
	kind := slices.Index([]pluginv1.PluginCacheKeyType{pluginv1.ImagePluginCacheKeyType, pluginv1.RegistryPluginCacheKeyType,
		pluginv1.GlobalPluginCacheKeyType}, response.CacheKeyType)
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, a := range p.cache {
		if backoff.Passed(now, a.expires) {
			delete(p.cache, key)
		}
	}
	p.cache[keys[kind]] = answer{known: known, expires: now.Add(lasts)}
}

// checkResponse says why an answer can't be used.
func (p *plugin) checkResponse(response *pluginv1.CredentialProviderResponse) error {
	if response.APIVersion != p.APIVersion || response.Kind != "CredentialProviderResponse" {
		return fmt.Errorf("it answered with a %s %s to a request in %s", response.APIVersion, response.Kind, p.APIVersion)
	}
	switch response.CacheKeyType {
	case pluginv1.ImagePluginCacheKeyType, pluginv1.RegistryPluginCacheKeyType, pluginv1.GlobalPluginCacheKeyType:
	default:
		return fmt.Errorf("its cacheKeyType %q is not one of Image, Registry and Global", response.CacheKeyType)
	}
	if response.CacheDuration != nil && response.CacheDuration.Duration < 0 {
		return errors.New("its cacheDuration is negative")
	}
	return nil
}
