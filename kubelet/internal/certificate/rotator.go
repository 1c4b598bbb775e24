package certificate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// Adopt has cfg use the certificate that a Rotator keeps. Where there is none
// yet, or only an old one, cfg's own becomes the first.
func Adopt(cfg *rest.Config, o Options) error {
	file := o.File()
	fresh, err := pki.Fresh(file, file, o.Clock.Now())
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	if !fresh {
		pair, err := pairOf(cfg)
		if err != nil {
			return err
		}
		if pair == nil {
			return fmt.Errorf("rotateCertificates: the kubeconfig has no client certificate to begin with")
		}
		if err := o.write(pair); err != nil {
			return err
		}
	}
	cfg.CertData, cfg.KeyData = nil, nil
	cfg.CertFile, cfg.KeyFile = file, file
	return nil
}

// Rotator has a client's certificate replaced long before it expires.
type Rotator struct {
	Options
	Client *rest.Client
}

// Run waits and rotates until ctx ends.
func (r *Rotator) Run(ctx context.Context) error {
	for {
		wait, err := r.wait()
		if err != nil {
			return err
		}
		if err := rest.Sleep(ctx, r.Clock, wait); err != nil {
			return nil // ctx has ended
		}
		if err := r.obtain(ctx, r.Client); err != nil {
			return nil // ctx has ended
		}
		r.Client.Reconnect()
		r.Logger.Info("client certificate rotated")
	}
}

// wait is how long it is until the certificate has lived for seven to nine
// tenths of its life, at random, so that not all nodes ask at once; and at
// least a tenth of what is left of it, because signers date back.
func (r *Rotator) wait() (time.Duration, error) {
	pair, err := pki.Load(r.File(), r.File())
	if err != nil {
		return 0, fmt.Errorf("client certificate: %w", err)
	}
	cert, err := pair.TLS()
	if err != nil {
		return 0, fmt.Errorf("client certificate: %w", err)
	}
	now := r.Clock.Now()
	life, left := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore), cert.Leaf.NotAfter.Sub(now)
	lived := time.Duration(float64(life) * (0.7 + 0.2*rand.Float64()))
	wait := max(lived-(life-left), left/10)
	r.Logger.Info("client certificate", zap.Time("expires", cert.Leaf.NotAfter), zap.Time("rotation", now.Add(wait)))
	return wait, nil
}
