package chain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authn/configuration"
	"kctl/apiserver/internal/authn/oidc"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
)

// outsideIssuers returns what authenticates tokens of issuers outside the
// cluster (nil if there are none) and who is let in without a credential, as
// the flags or a file say.
func (a *Authentication) outsideIssuers() (authn.TokenAuthenticator, error) {
	o := a.o.Flags
	a.Chain.Put(a.anonymousByFlag())
	if o.AuthenticationConfig != "" {
		return a.authenticationFile()
	}
	i := o.OIDC
	if i.IssuerURL == "" {
		return nil, nil
	}
	var authorities []byte
	if i.CAFile != "" {
		var err error
		if authorities, err = os.ReadFile(i.CAFile); err != nil {
			return nil, fmt.Errorf("--oidc-ca-file: %w", err)
		}
	}
	return oidc.New(oidc.Options{
		IssuerURL: i.IssuerURL, Clients: []string{i.ClientID}, Authorities: authorities,
		UsernameClaim: i.UsernameClaim, UsernamePrefix: i.UsernamePrefix,
		GroupsClaim: i.GroupsClaim, GroupsPrefix: i.GroupsPrefix, RequiredClaims: i.RequiredClaims,
		SigningAlgorithms: i.SigningAlgorithms, Audiences: o.APIAudiences, Clock: a.o.Clock, Metrics: oidc.NewMetrics(a.o.Metrics, a.o.Clock),
	})
}

// authenticationFile follows the file of --authentication-config.
func (a *Authentication) authenticationFile() (authn.TokenAuthenticator, error) {
	path := a.o.Flags.AuthenticationConfig
	content, err := configfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--authentication-config: %w", err)
	}
	issuers := &authn.ExchangeableTokens{}
	metrics := oidc.NewMetrics(a.o.Metrics, a.o.Clock)
	var before []*oidc.Authenticator
	// A changed file comes into force when all its issuers have answered, so that a
	// misspelt one locks no one out. At the start this is not awaited, since an issuer
	// may run in this very cluster.
	apply := func(content []byte, reach bool) error {
		outside, rule, err := a.issuersOf(content, metrics)
		if err != nil {
			return fmt.Errorf("--authentication-config=%s: %w", path, err)
		}
		var kinds authn.Tokens
		for _, issuer := range outside {
			if reach {
				if err := issuer.Discover(context.Background()); err != nil {
					return fmt.Errorf("--authentication-config=%s: %w", path, err)
				}
			}
			kinds = append(kinds, issuer)
		}
		issuers.Put(kinds)
		a.Chain.Put(rule)
		for _, old := range before {
			if !slices.ContainsFunc(outside, func(i *oidc.Authenticator) bool { return i.Issuer() == old.Issuer() }) {
				metrics.Forget(old.Issuer())
			}
		}
		before = outside
		return nil
	}
	if err := apply(content, false); err != nil {
		return nil, err
	}
	changed := func(content []byte) error { return apply(content, true) }
	a.Files = append(a.Files, &configfile.Follower{
		Path: path, Content: content, Apply: changed, Clock: a.o.Clock, Logger: a.o.Logger,
		Metrics: configfile.NewMetrics("authentication", content, a.o.Metrics),
	})
	return issuers, nil
}

var errAnonymousTwice = errors.New("anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in " +
	"authentication configuration file")

// issuersOf builds what a file's content describes.
func (a *Authentication) issuersOf(content []byte, metrics *oidc.Metrics) ([]*oidc.Authenticator, authn.AnonymousRule, error) {
	o := a.o.Flags
	rule := a.anonymousByFlag()
	configured, err := configuration.Parse(content, o.ServiceAccountIssuers)
	if err != nil {
		return nil, rule, err
	}
	if rules := configured.Anonymous; rules != nil {
		if o.Given("anonymous-auth") {
			return nil, rule, errAnonymousTwice
		}
		rule = anonymousRule(rules)
	}
	var issuers []*oidc.Authenticator
	for _, i := range configured.Issuers {
		issuer, err := oidc.New(oidc.Options{
			IssuerURL: i.URL, DiscoveryURL: ptr.Deref(i.DiscoveryURL, ""), Clients: i.Audiences, Authorities: []byte(i.CertificateAuthority),
			UserOf: i.Mapping.User, SigningAlgorithms: config.OIDCAlgorithms(), Audiences: o.APIAudiences, Clock: a.o.Clock, Metrics: metrics,
		})
		if err != nil {
			return nil, rule, err
		}
		issuers = append(issuers, issuer)
	}
	return issuers, rule, nil
}

// HealthPaths answer one word to anyone, unless configured otherwise: a probe, a
// load balancer or a test environment has no credential to show.
var HealthPaths = []string{"/healthz", "/livez", "/readyz"}

// anonymousByFlag is who is let in without a credential if no file says so.
func (a *Authentication) anonymousByFlag() authn.AnonymousRule {
	if !a.o.Flags.Given("anonymous-auth") && !a.o.Flags.AnonymousAuth {
		return authn.AnonymousRule{Enabled: true, Paths: HealthPaths}
	}
	return authn.AnonymousRule{Enabled: a.o.Flags.AnonymousAuth}
}

func anonymousRule(a *apiserverv1.AnonymousAuthConfig) authn.AnonymousRule {
	rule := authn.AnonymousRule{Enabled: a.Enabled}
	for _, condition := range a.Conditions {
		rule.Paths = append(rule.Paths, condition.Path)
	}
	return rule
}
