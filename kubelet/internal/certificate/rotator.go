package certificate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"kctl/proto/backoff"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// Adopt makes cfg use the certificate that a Rotator keeps. If there is none
// yet, or only an expired one, cfg's own becomes the first.
func Adopt(cfg *rest.Config, o Options) error {
	file := o.File()
	state, err := o.inspect()
	if err != nil {
		return err
	}
	if state == broken && cfg.CertFile == file {
		return fmt.Errorf("certificate %s is broken, and the kubeconfig has no other: delete the file, and start the kubelet with "+
			"--bootstrap-kubeconfig or put a new certificate with its key there", file)
	}
	if state != good {
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

// Provide makes sure that there is a certificate to serve with. Until a Rotator
// gets a signed one, it is a self-signed one, which no client that verifies it
// accepts.
func Provide(o Options) error {
	state, err := o.inspect()
	if err != nil || state == good {
		return err
	}
	pair, err := pki.SelfSigned(o.Subject, o.Clock.Now(), provisionally)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return o.write(pair)
}

// provisionally is the validity of the self-signed certificate.
const provisionally = 365 * 24 * time.Hour

// Rotator replaces a certificate long before it expires.
type Rotator struct {
	Options
	Client *rest.Client
	// Rotated is called when there is a new certificate; it may be nil.
	Rotated func()
	// Addresses are those that the certificate has to hold now, in place of its subject's: one that lacks
	// some is replaced. It is nil where they don't change.
	Addresses func() []net.IP

	certified []net.IP // the addresses of the certificate, or of the last request for one
	measures  rotationMetrics
}

// Run waits and rotates until ctx ends.
func (r *Rotator) Run(ctx context.Context) error {
	leaf, err := r.leaf()
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	r.certified = leaf.IPAddresses
	for {
		due, err := r.due()
		if err != nil {
			return err
		}
		// It waits in short naps: a timer stands still while the machine is
		// suspended, and does not follow when the clock is set. Addresses may change meanwhile.
		for left := due.Sub(r.Clock.Now()); left > 0 && !r.moved(); left = due.Sub(r.Clock.Now()) {
			if err := backoff.Sleep(ctx, r.Clock, min(left, nap)); err != nil {
				return nil // ctx has ended
			}
		}
		old, unreadable := r.leaf()
		if err := r.replace(ctx); err != nil {
			return nil // ctx has ended
		}
		if unreadable == nil {
			r.measures.replaced(r.Clock.Since(old.NotBefore))
		}
		if r.Rotated != nil {
			r.Rotated()
		}
		r.Logger.Info("certificate rotated", zap.String("file", r.File()))
	}
}

// replace obtains a certificate that holds the addresses as they are. Its only error is ctx's.
func (r *Rotator) replace(ctx context.Context) error {
	if r.Addresses == nil {
		return r.obtain(ctx, r.Client, r.measures.failed)
	}
	for look := nap; ; look = min(2*look, patience) { // an address that comes and goes makes few requests
		r.Subject.IPs = r.Addresses()
		r.certified = r.Subject.IPs
		err := r.obtainUnlessMoved(ctx, look)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		r.Logger.Info("the node has other addresses than the certificate request, another is made", zap.String("file", r.File()))
	}
}

// obtainUnlessMoved gives up what waits for approval once it lacks an address when it looks: who approves
// requests checks whether the addresses are the node's, so that this one may wait for ever.
func (r *Rotator) obtainUnlessMoved(ctx context.Context, look time.Duration) error {
	ctx, giveUp := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for backoff.Sleep(ctx, r.Clock, look) == nil && !r.moved() {
		}
		giveUp()
	})
	defer watching.Wait()
	defer giveUp()
	return r.obtain(ctx, r.Client, r.measures.failed)
}

// nap is how long a Rotator goes without looking at the clock and at the addresses.
const nap = time.Minute

// moved says that the certificate lacks an address. A signer that leaves one out is asked once.
func (r *Rotator) moved() bool {
	return r.Addresses != nil && slices.ContainsFunc(r.Addresses(), func(ip net.IP) bool {
		return !slices.ContainsFunc(r.certified, ip.Equal)
	})
}

// due is when to replace the certificate: after seven to nine tenths of its
// life, at random, so that nodes don't all ask at once; and at least a tenth of
// its remaining life from now, because signers backdate. A self-signed one is
// due at once.
func (r *Rotator) due() (time.Time, error) {
	leaf, err := r.leaf()
	if err != nil {
		return time.Time{}, fmt.Errorf("certificate: %w", err)
	}
	now := r.Clock.Now().Round(0)
	if bytes.Equal(leaf.RawIssuer, leaf.RawSubject) {
		return now, nil
	}
	life, left := leaf.NotAfter.Sub(leaf.NotBefore), leaf.NotAfter.Sub(now)
	lived := time.Duration(float64(life) * (0.7 + 0.2*rand.Float64()))
	due := now.Add(max(lived-(life-left), left/10))
	r.Logger.Info("certificate", zap.String("file", r.File()), zap.Time("expires", leaf.NotAfter), zap.Time("rotation", due))
	return due, nil
}
