package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authn/bootstraptoken"
	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/authn/trust"
	"kctl/apiserver/internal/authn/webhook"
	"kctl/apiserver/internal/callout"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/signing"
	"kctl/proto/pki"
)

// serviceAccountKeys returns the options' signing key and verification keys. A
// server without any makes a key of its own, so that tokens work from the first
// run.
func serviceAccountKeys(o *config.Options) (signing string, verification []string, err error) {
	signing, verification = o.ServiceAccountSigningKeyFile, o.ServiceAccountKeyFiles
	if signing == "" && len(verification) == 0 {
		signing = filepath.Join(o.CertDir, "sa.key")
		if _, err := os.Stat(signing); os.IsNotExist(err) {
			private, _, err := pki.NewSigningKey()
			if err == nil {
				err = os.MkdirAll(o.CertDir, 0o700)
			}
			if err == nil {
				err = pki.WriteFile(signing, private)
			}
			if err != nil {
				return "", nil, fmt.Errorf("service account key: %w", err)
			}
		}
	}
	if len(verification) == 0 {
		verification = []string{signing}
	}
	return signing, verification, nil
}

// accounts is all about service account tokens: what makes them, which is nil
// without a signing key (tokens come from elsewhere then), what checks them, and
// the keys that others may check them with.
type accounts struct {
	issuer        *serviceaccount.Issuer
	authenticator *serviceaccount.Authenticator
	legacy        *serviceaccount.Legacy
	keys          []serviceaccount.PublicKey
}

func serviceAccounts(o *config.Options, objects serviceaccount.Objects, uses *serviceaccount.Uses, clock clock.PassiveClock) (*accounts, error) {
	signing, verification, err := serviceAccountKeys(o)
	if err != nil {
		return nil, err
	}
	keys, err := serviceaccount.LoadPublicKeys(verification)
	if err != nil {
		return nil, err
	}
	a := &accounts{keys: keys, authenticator: serviceaccount.NewAuthenticator(o.ServiceAccountIssuers, o.APIAudiences, keys, objects, uses, clock)}
	a.legacy = serviceaccount.NewLegacy(o.APIAudiences, keys, objects, uses, clock)
	if signing == "" {
		return a, nil
	}
	key, err := serviceaccount.LoadSigningKey(signing)
	if err != nil {
		return nil, err
	}
	if a.issuer, err = serviceaccount.NewIssuer(o.ServiceAccountIssuers[0], o.APIAudiences, key, clock); err != nil {
		return nil, err
	}
	a.issuer.Longest, a.issuer.Exact = o.AccountTokens.Longest, !o.AccountTokens.Extend
	return a, nil
}

// signTokensAndCertificates gives the housekeeping loops what they sign with.
func (s *Server) signTokensAndCertificates(d *housekeeping.Dependencies) error {
	d.Authorizer = s.authorizer
	if s.accounts.issuer != nil {
		d.AccountTokens = s.accounts.issuer
	}
	if c := s.options.ClusterSigning; c.CertFile != "" {
		d.Signing = &signing.Authority{CertFile: c.CertFile, KeyFile: c.KeyFile, Longest: c.Duration}
		return d.Signing.Validate()
	}
	return nil
}

// identities is how the server finds out who asks.
type identities struct {
	anonymous authn.Anonymous
	tokens    authn.TokenAuthenticator // kinds of token alone, for reviews
	headers   []authn.HeaderNames      // that proxies may use; they end at authentication
	// What certificates of clients and of proxies are checked against; nil
	// where none are accepted.
	clients, proxies *authn.Authorities
}

// authentication builds the chain in upstream's order: proxies, certificates,
// then tokens, then, where allowed, nobody.
func (s *Server) authentication(found objects) (*identities, error) {
	o, clock := s.options, s.clock
	who := &identities{headers: []authn.HeaderNames{authn.CommonHeaderNames}}
	var union authn.Union
	if h := o.RequestHeader; h.ClientCAFile != "" {
		var err error
		if who.proxies, err = authn.NewAuthorities("authority of proxies", h.ClientCAFile, clock); err != nil {
			return nil, err
		}
		names := authn.HeaderNames{Username: h.UsernameHeaders, UID: h.UIDHeaders, Group: h.GroupHeaders, ExtraPrefix: h.ExtraPrefixes}
		who.headers = append(who.headers, names)
		union = append(union, authn.NewRequestHeader(who.proxies, h.AllowedNames, names, clock))
	}
	if o.ClientCAFile != "" {
		var err error
		if who.clients, err = authn.NewAuthorities("client certificate authority", o.ClientCAFile, clock); err != nil {
			return nil, err
		}
		union = append(union, authn.NewCertificates(who.clients, clock))
	}
	if who.proxies != nil && who.clients != nil && len(o.RequestHeader.AllowedNames) == 0 && authn.Overlap(who.proxies.PEM(), who.clients.PEM()) {
		return nil, errOverlap
	}
	issuers, err := s.outsideIssuers(&who.anonymous)
	if err != nil {
		return nil, err
	}
	kinds, err := tokenKinds(o, s.accounts, issuers, found, clock)
	if err != nil {
		return nil, err
	}
	who.tokens = authn.NewCached(kinds, tokenTTL, clock)
	union = append(union, authn.Bearer{Tokens: who.tokens}, authn.WebSocket{Tokens: who.tokens})
	who.anonymous.Next = union
	return who, nil
}

// publisher tells other servers of the cluster whom this one believes.
func (i *identities) publisher(o *config.Options, configMaps trust.ConfigMaps, clock clock.Clock, logger *zap.Logger) *trust.Publisher {
	h := o.RequestHeader
	return &trust.Publisher{
		ConfigMaps: configMaps, Clients: i.clients, Proxies: i.proxies, AllowedNames: h.AllowedNames,
		Headers: authn.HeaderNames{Username: h.UsernameHeaders, UID: h.UIDHeaders, Group: h.GroupHeaders, ExtraPrefix: h.ExtraPrefixes},
		Clock:   clock, Logger: logger,
	}
}

var errOverlap = errors.New("--requestheader-client-ca-file and --client-ca-file have an authority in common: " +
	"--requestheader-allowed-names is needed too, or every client could name any user")

// tokenTTL is how long a token that was good is good without a look at it. A
// service account deleted this moment may act for that much longer.
const tokenTTL = 10 * time.Second

// tokenKinds are the kinds of token that the options accept; the one that costs
// a request is last.
func tokenKinds(o *config.Options, accounts *accounts, issuers authn.TokenAuthenticator, found objects, clock clock.WithTicker) (authn.Tokens, error) {
	var kinds authn.Tokens
	if o.TokenAuthFile != "" {
		file, err := authn.LoadTokenFile(o.TokenAuthFile, o.APIAudiences)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, file)
	}
	kinds = append(kinds, accounts.authenticator, accounts.legacy)
	if o.BootstrapTokenAuth {
		kinds = append(kinds, &bootstraptoken.Authenticator{Secrets: found, Audiences: o.APIAudiences, Clock: clock})
	}
	if issuers != nil {
		kinds = append(kinds, issuers)
	}
	if w := o.TokenWebhook; w.ConfigFile != "" {
		service, err := callout.Load(w.ConfigFile, clock)
		if err != nil {
			return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
		}
		asked := &webhook.Authenticator{Service: service, Version: w.Version, Audiences: o.APIAudiences}
		kinds = append(kinds, authn.NewCached(asked, w.TTL, clock))
	}
	return kinds, nil
}
