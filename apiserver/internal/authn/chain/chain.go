package chain

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authn/bootstraptoken"
	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/authn/trust"
	"kctl/apiserver/internal/authn/webhook"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/clientauth"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// Options are what Authentication is built from.
type Options struct {
	Flags   *config.Options
	Objects Objects // that tokens are bound to
	Metrics *prometheus.Registry
	Clock   clock.WithTicker
	Logger  *zap.Logger
}

// Authentication finds out who makes a request.
type Authentication struct {
	// Chain authenticates requests; its end are those without a credential.
	Chain authn.Anonymous
	// Tokens authenticates tokens only, for TokenReviews.
	Tokens authn.TokenAuthenticator
	// Headers are those that authenticating proxies use; they are removed at authentication.
	Headers []clientauth.HeaderNames
	// Issuer issues service account tokens; nil without a signing key, when they
	// come from elsewhere.
	Issuer *serviceaccount.Issuer
	// Keys are the public keys with which others can verify service account tokens.
	Keys []serviceaccount.PublicKey
	// Files are the configuration files to be watched.
	Files []*configfile.Follower

	o Options
	// The CAs of certificates of clients and of proxies; nil if none are accepted.
	clients, proxies *pki.Authorities
}

// New builds the chain that the flags ask for.
func New(o Options) (*Authentication, error) {
	a := &Authentication{o: o, Headers: []clientauth.HeaderNames{clientauth.CommonHeaderNames}}
	accounts, err := a.serviceAccounts(serviceaccount.NewUses(o.Metrics))
	if err != nil {
		return nil, err
	}
	if err := a.chain(accounts); err != nil {
		return nil, err
	}
	return a, nil
}

// chain is in upstream's order: proxies, certificates, tokens and, if allowed,
// anonymous requests. What the server asks of itself shows none of these.
func (a *Authentication) chain(accounts authn.Tokens) error {
	flags, clock := a.o.Flags, a.o.Clock
	var union authn.Union
	if h := flags.RequestHeader; h.ClientCAFile != "" {
		var err error
		if a.proxies, err = pki.NewAuthorities("authority of proxies", h.ClientCAFile, clock); err != nil {
			return err
		}
		names := a.headerNames()
		a.Headers = append(a.Headers, names)
		union = append(union, clientauth.NewRequestHeader(a.proxies, h.AllowedNames, names, clock))
	}
	if flags.ClientCAFile != "" {
		var err error
		if a.clients, err = pki.NewAuthorities("client certificate authority", flags.ClientCAFile, clock); err != nil {
			return err
		}
		union = append(union, authn.NewCertificates(a.clients, clock, a.o.Metrics))
	}
	if a.proxies != nil && a.clients != nil && len(flags.RequestHeader.AllowedNames) == 0 && authn.Overlap(a.proxies.PEM(), a.clients.PEM()) {
		return errOverlap
	}
	issuers, err := a.outsideIssuers()
	if err != nil {
		return err
	}
	kinds, err := a.tokenKinds(accounts, issuers)
	if err != nil {
		return err
	}
	a.Tokens = authn.NewCached(kinds, tokenTTL, clock)
	a.Chain.Next = append(union, authn.Bearer{Tokens: a.Tokens}, authn.WebSocket{Tokens: a.Tokens}, authn.Itself{})
	return nil
}

func (a *Authentication) headerNames() clientauth.HeaderNames {
	h := a.o.Flags.RequestHeader
	return clientauth.HeaderNames{Username: h.UsernameHeaders, UID: h.UIDHeaders, Group: h.GroupHeaders, ExtraPrefix: h.ExtraPrefixes}
}

// Publisher tells the cluster's other servers which CAs this one trusts.
func (a *Authentication) Publisher(configMaps *registry.Store[*core.ConfigMap]) *trust.Publisher {
	return &trust.Publisher{
		ConfigMaps: configMaps, Clients: a.clients, Proxies: a.proxies, AllowedNames: a.o.Flags.RequestHeader.AllowedNames,
		Headers: a.headerNames(), Clock: a.o.Clock, Logger: a.o.Logger,
	}
}

var errOverlap = errors.New("--requestheader-client-ca-file and --client-ca-file share a CA: " +
	"--requestheader-allowed-names is needed too, or every client could name any user")

// tokenTTL is how long a valid token is accepted without being checked again. A
// service account may act that much longer after its deletion.
const tokenTTL = 10 * time.Second

// tokenKinds are authenticators for the kinds of token that the options accept;
// the one that costs a request is last.
func (a *Authentication) tokenKinds(accounts authn.Tokens, issuers authn.TokenAuthenticator) (authn.Tokens, error) {
	o, clock := a.o.Flags, a.o.Clock
	var kinds authn.Tokens
	if o.TokenAuthFile != "" {
		file, err := authn.LoadTokenFile(o.TokenAuthFile, o.APIAudiences)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, file)
	}
	kinds = append(kinds, accounts...)
	if o.BootstrapTokenAuth {
		kinds = append(kinds, &bootstraptoken.Authenticator{Secrets: a.o.Objects, Audiences: o.APIAudiences, Clock: clock})
	}
	if issuers != nil {
		kinds = append(kinds, issuers)
	}
	if w := o.TokenWebhook; w.ConfigFile != "" {
		service, err := webhookclient.Load(w.ConfigFile, clock, daemon.LogFileProblems(a.o.Logger))
		if err != nil {
			return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
		}
		asked := &webhook.Authenticator{Service: service, Version: w.Version, Audiences: o.APIAudiences}
		kinds = append(kinds, authn.NewCached(asked, w.TTL, clock))
	}
	return kinds, nil
}
