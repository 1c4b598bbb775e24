package server

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/config"
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
	keys          []serviceaccount.PublicKey
}

func serviceAccounts(o *config.Options, objects serviceaccount.Objects, clock clock.PassiveClock) (*accounts, error) {
	signing, verification, err := serviceAccountKeys(o)
	if err != nil {
		return nil, err
	}
	keys, err := serviceaccount.LoadPublicKeys(verification)
	if err != nil {
		return nil, err
	}
	a := &accounts{keys: keys, authenticator: serviceaccount.NewAuthenticator(o.ServiceAccountIssuers, o.APIAudiences, keys, objects, clock)}
	if signing == "" {
		return a, nil
	}
	key, err := serviceaccount.LoadSigningKey(signing)
	if err != nil {
		return nil, err
	}
	a.issuer, err = serviceaccount.NewIssuer(o.ServiceAccountIssuers[0], o.APIAudiences, key, clock)
	return a, err
}

// authentication builds the chain in upstream's order: certificates, then
// tokens, then, where allowed, nobody.
func authentication(o *config.Options, accountTokens authn.TokenAuthenticator, clock clock.PassiveClock) (authn.Authenticator, authn.TokenAuthenticator, error) {
	var union authn.Union
	if o.ClientCAFile != "" {
		certificates, err := authn.NewCertificates(o.ClientCAFile, clock)
		if err != nil {
			return nil, nil, err
		}
		union = append(union, certificates)
	}
	var kinds authn.Tokens
	if o.TokenAuthFile != "" {
		file, err := authn.LoadTokenFile(o.TokenAuthFile, o.APIAudiences)
		if err != nil {
			return nil, nil, err
		}
		kinds = append(kinds, file)
	}
	tokens := authn.NewCached(append(kinds, accountTokens), clock)
	union = append(union, authn.Bearer{Tokens: tokens})
	if o.AnonymousAuth {
		return authn.Anonymous{Next: union}, tokens, nil
	}
	return union, tokens, nil
}
