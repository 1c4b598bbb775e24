package certificate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/proto/backoff"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// patience is how long to wait for one request before another is made:
// upstream's.
const patience = 15 * time.Minute

// retry is how long to wait after a failed request.
var retry = backoff.Policy{Initial: 2 * time.Second, Max: 2 * time.Minute, Jitter: 0.2}

// Options of Bootstrap and of a Rotator. All are needed.
type Options struct {
	Purpose Purpose
	// Subject is the certificate's subject.
	Subject pki.Subject
	// Dir is where the certificate and its key are kept, under upstream's name.
	Dir    string
	Clock  clock.Clock
	Logger *zap.Logger

	// keyFile keeps the key until there is a certificate, over restarts; "" does not.
	keyFile string
}

// Purpose is what a certificate is for.
type Purpose struct {
	file   string
	signer string
	usage  certificatesv1.KeyUsage
}

// The kubelet is a client of the API server, and serves.
var (
	Client  = Purpose{"kubelet-client-current.pem", certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth}
	Serving = Purpose{"kubelet-server-current.pem", certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth}
)

// File is where the certificate and its key are.
func (o Options) File() string { return filepath.Join(o.Dir, o.Purpose.file) }

// Bootstrap writes the kubeconfig at path for a certificate that it gets with
// the credentials of another kubeconfig. If there is one already, with a valid
// certificate, it does nothing. It waits until the certificate is there or ctx
// ends; it returns an error only for what waiting can't improve.
func Bootstrap(ctx context.Context, path, bootstrapPath string, o Options) error {
	valid, err := o.usable(path)
	if err != nil || valid {
		return err
	}
	cfg, err := rest.LoadKubeconfig(bootstrapPath)
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig: %w", err)
	}
	client, err := rest.New(cfg)
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig: %w", err)
	}
	o.keyFile = filepath.Join(o.Dir, "kubelet-client.key.tmp") // upstream's
	if err := o.obtain(ctx, client, func() {}); err != nil {
		return err
	}
	return o.writeKubeconfig(path, cfg)
}

// usable says that a kubeconfig exists, and that its certificate, if any, has
// not expired. A broken one of ours, as a power cut leaves it, is not usable.
func (o Options) usable(path string) (bool, error) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return false, nil // it was never completely written
	}
	cfg, err := rest.LoadKubeconfig(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("--kubeconfig: %w (if it is not worth mending, delete it, and another is made by --bootstrap-kubeconfig)", err)
	}
	if cfg.CertFile == o.File() {
		state, err := o.inspect()
		return state == good, err
	}
	pair, err := pairOf(cfg)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || pair == nil {
		return err == nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return false, fmt.Errorf("--kubeconfig: %w", err)
	}
	return o.Clock.Now().Before(cert.Leaf.NotAfter), nil
}

// pairOf is the client certificate of a configuration; nil if it has none.
func pairOf(cfg *rest.Config) (*pki.Pair, error) {
	if len(cfg.CertData) > 0 {
		return &pki.Pair{Cert: cfg.CertData, Key: cfg.KeyData}, nil
	}
	if cfg.CertFile == "" {
		return nil, nil
	}
	pair, err := pki.Load(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return pair, nil
}

// obtain gets a certificate and writes it, retrying until that succeeds; its only
// error is ctx's. failed is called for each failed attempt.
func (o Options) obtain(ctx context.Context, client *rest.Client, failed func()) error {
	for failures := 1; ; failures++ {
		err := o.obtainOnce(ctx, client)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		failed()
		o.Logger.Warn("no certificate yet", zap.String("file", o.File()), zap.Error(err))
		if err := backoff.Sleep(ctx, o.Clock, retry.Delay(failures)); err != nil {
			return err
		}
	}
}

func (o Options) obtainOnce(ctx context.Context, client *rest.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pair, err := o.request(ctx, client)
	if err != nil {
		return err
	}
	if err := o.write(pair); err != nil {
		return err
	}
	o.forgetKey()
	return nil
}

// newRequest makes a request, with the key that is kept if there is one, and that key.
func (o Options) newRequest() (request, key []byte, err error) {
	if o.keyFile != "" {
		if key, err = os.ReadFile(o.keyFile); err == nil {
			if request, err = pki.NewRequest(o.Subject, key); err == nil {
				return request, key, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			o.Logger.Warn("the key of an earlier certificate request can't be used, another is made", zap.String("file", o.keyFile), zap.Error(err))
		}
	}
	if key, err = pki.NewKey(); err != nil {
		return nil, nil, err
	}
	if o.keyFile != "" {
		if err := errors.Join(os.MkdirAll(o.Dir, 0o700), pki.WriteFile(o.keyFile, key)); err != nil {
			return nil, nil, fmt.Errorf("key of the certificate request: %w", err)
		}
	}
	request, err = pki.NewRequest(o.Subject, key)
	return request, key, err
}

// forgetKey makes the next request one with another key.
func (o Options) forgetKey() {
	if o.keyFile == "" {
		return
	}
	if err := os.Remove(o.keyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Logger.Warn("the key of a certificate request was not removed", zap.Error(err))
	}
}

// write puts certificate and key into one file, so that they always belong
// together.
func (o Options) write(pair *pki.Pair) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return pki.WriteFile(o.File(), append(append([]byte{}, pair.Cert...), pair.Key...))
}

// writeKubeconfig writes one that points to the certificate's file, for the API
// server of cfg.
func (o Options) writeKubeconfig(path string, cfg *rest.Config) error {
	cluster := map[string]any{"server": cfg.Host}
	for key, value := range map[string]string{"certificate-authority": cfg.CAFile, "tls-server-name": cfg.ServerName} {
		if value != "" {
			cluster[key] = value
		}
	}
	if len(cfg.CAData) > 0 {
		cluster["certificate-authority-data"] = cfg.CAData
	}
	if cfg.Insecure {
		cluster["insecure-skip-tls-verify"] = true
	}
	const name = "default"
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": cluster}},
		"users":    []any{map[string]any{"name": name, "user": map[string]any{"client-certificate": o.File(), "client-key": o.File()}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return pki.WriteFile(path, data)
}
