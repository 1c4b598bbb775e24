package chain

import (
	"fmt"
	"os"
	"path/filepath"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/config"
	"kctl/proto/pki"
)

// serviceAccountKeys returns the options' signing key and verification keys.
// Without any, a server makes a key of its own, so that tokens work from the
// first run.
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

// serviceAccounts makes the authenticator of service account tokens, and their
// issuer.
func (a *Authentication) serviceAccounts(uses *serviceaccount.Uses) (authn.Tokens, error) {
	o, clock := a.o.Flags, a.o.Clock
	signing, verification, err := serviceAccountKeys(o)
	if err != nil {
		return nil, err
	}
	if a.Keys, err = serviceaccount.LoadPublicKeys(verification); err != nil {
		return nil, err
	}
	checks := serviceaccount.Checks{Audiences: o.APIAudiences, Keys: a.Keys, Objects: a.o.Objects, Uses: uses, Clock: clock}
	kinds := authn.Tokens{serviceaccount.NewAuthenticator(o.ServiceAccountIssuers, checks), serviceaccount.NewLegacy(checks)}
	if signing == "" {
		return kinds, nil
	}
	key, err := serviceaccount.LoadSigningKey(signing)
	if err != nil {
		return nil, err
	}
	if a.Issuer, err = serviceaccount.NewIssuer(o.ServiceAccountIssuers[0], o.APIAudiences, key, clock); err != nil {
		return nil, err
	}
	a.Issuer.Longest, a.Issuer.Exact = o.AccountTokens.Longest, !o.AccountTokens.Extend
	return kinds, nil
}
