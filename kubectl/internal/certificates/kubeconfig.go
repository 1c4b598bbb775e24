package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// NewKubeconfig is a kubeconfig for one user of one API server. user is how the
// user proves who they are. It is self-contained, so that the file alone can be
// copied to another machine.
func NewKubeconfig(server string, ca []byte, name string, user map[string]any) ([]byte, error) {
	const cluster = "kctl"
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": cluster,
		"clusters": []any{map[string]any{"name": cluster, "cluster": map[string]any{
			"server": server, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": name, "user": user}},
		"contexts": []any{map[string]any{"name": cluster, "context": map[string]any{"cluster": cluster, "user": name}}},
	})
}

// byCertificate is a user with a client certificate.
func byCertificate(pair *pki.Pair) map[string]any {
	return map[string]any{"client-certificate-data": pair.Cert, "client-key-data": pair.Key}
}

// ByToken is a user with a token.
func ByToken(token string) map[string]any { return map[string]any{"token": token} }

// Mint makes a kubeconfig with a certificate that this directory's authority
// signs.
func (d *Directory) Mint(e Entry, now time.Time) ([]byte, error) {
	pair, err := newSigner(now).issue(d, e, nil)
	if err != nil {
		return nil, err
	}
	return d.kubeconfig(e, pair)
}

func (d *Directory) kubeconfig(e Entry, pair *pki.Pair) ([]byte, error) {
	if d.Server == "" {
		return nil, errors.New("the kubeconfig needs the API server's URL: use --server")
	}
	ca, err := os.ReadFile(d.Path(Authority + ".crt"))
	if err != nil {
		return nil, err
	}
	return NewKubeconfig(d.Server, ca, e.Subject.CommonName, byCertificate(pair))
}

// loadKubeconfig reads the pair inside of a kubeconfig.
func loadKubeconfig(path string) (*pki.Pair, error) {
	config, err := rest.LoadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	if len(config.CertData) == 0 || len(config.KeyData) == 0 {
		return nil, fmt.Errorf("%s: it contains no certificate and key", path)
	}
	return &pki.Pair{Cert: config.CertData, Key: config.KeyData}, nil
}

// replaceIn puts a new certificate in the place of the old one, and leaves
// everything else that a user may have written into the file.
func replaceIn(kubeconfig []byte, before, after *pki.Pair) ([]byte, error) {
	found := []byte(base64.StdEncoding.EncodeToString(before.Cert))
	if bytes.Count(kubeconfig, found) != 1 {
		return nil, errors.New("its certificate can't be replaced, because it is not on one line; move the file away and run `kctl pki init`")
	}
	return bytes.Replace(kubeconfig, found, []byte(base64.StdEncoding.EncodeToString(after.Cert)), 1), nil
}

// trusting puts the authorities that a file has now in the place of those that a
// kubeconfig trusts, which is how an authority is replaced. Where the two have none in
// common, the kubeconfig is for a server with a certificate from elsewhere, and stays
// as it is.
func trusting(kubeconfig, trusted, now []byte) ([]byte, error) {
	if bytes.Equal(trusted, now) || !haveCommon(trusted, now) {
		return kubeconfig, nil
	}
	found := []byte(base64.StdEncoding.EncodeToString(trusted))
	if bytes.Count(kubeconfig, found) != 1 {
		return nil, errors.New("its CA can't be replaced, because it is not on one line; move the file away and run `kctl pki init`")
	}
	return bytes.Replace(kubeconfig, found, []byte(base64.StdEncoding.EncodeToString(now)), 1), nil
}

// haveCommon says that two texts in PEM have a certificate in common.
func haveCommon(a, b []byte) bool {
	some, errA := certutil.ParseCertsPEM(a)
	others, errB := certutil.ParseCertsPEM(b)
	return errA == nil && errB == nil && slices.ContainsFunc(some, func(one *x509.Certificate) bool {
		return slices.ContainsFunc(others, one.Equal)
	})
}

// ServerOf is the API server that a kubeconfig of the directory is for; "" if
// there is none.
func (d *Directory) ServerOf(name string) string {
	config, err := rest.LoadKubeconfig(d.Kubeconfig(name))
	if err != nil {
		return ""
	}
	return config.Host
}
