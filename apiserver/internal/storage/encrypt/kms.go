package encrypt

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kmsv2 "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/proto/backoff"
)

const (
	// How often a KMS is asked for its current key, while it answers and while it
	// doesn't, and how long its last answer is valid. Upstream's values.
	statusInterval = time.Minute
	retryInterval  = 10 * time.Second
	seedLifetime   = 3 * time.Minute
	// minQueryInterval is the least time between questions to a service that is away, so
	// that waiting callers do not each ask it in turn.
	minQueryInterval = time.Second
	// cachedSeeds is how many opened seeds are remembered.
	cachedSeeds = 1000

	// Bounds on a KMS's answers; upstream's.
	maxKeyID       = 1 << 10
	maxSealedSeed  = 1 << 10
	maxAnnotations = 32 << 10
	maxKMSMessage  = 1 << 20
)

// kms seals with keys derived from a seed that only an external key management
// service can open (KMS v2): the seed, sealed by the service, is stored with
// each value, and the service is called once per seed rather than once per
// value.
type kms struct {
	name    string
	timeout time.Duration
	client  kmsv2.KeyManagementServiceClient
	clock   clock.WithTicker
	metrics *metrics
	logger  *zap.Logger

	refreshing sync.Mutex // one at a time
	mu         sync.RWMutex
	current    *seed     // nil until the service has answered
	until      time.Time // current may seal until then
	failed     error     // why the last status call failed
	failedAt   time.Time

	openedSeeds *lru.Cache // seeds by their stored form
}

// seed is one seed, and its stored form.
type seed struct {
	keyID       string
	sealed      []byte
	annotations map[string][]byte
	source      int32
	sealer      sealer
}

// grpcTarget is an endpoint in gRPC's notation. A path that begins with an @ is not a file
// but an abstract socket (Linux).
func grpcTarget(endpoint string) string {
	if name, ok := strings.CutPrefix(endpoint, "unix:///@"); ok {
		return "unix-abstract:" + name
	}
	return endpoint
}

func newKMS(ctx context.Context, c *kmsConfig, clock clock.WithTicker, metrics *metrics, logger *zap.Logger) (*kms, error) {
	connection, err := grpc.NewClient(grpcTarget(c.Endpoint),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a socket of this machine
		grpc.WithUnaryInterceptor(metrics.timeCalls(c.Name, clock)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxKMSMessage)))
	if err != nil {
		return nil, fmt.Errorf("kms %s: %w", c.Name, err)
	}
	k := &kms{
		name: c.Name, timeout: c.timeout(), client: kmsv2.NewKeyManagementServiceClient(connection),
		clock: clock, metrics: metrics, logger: logger.With(zap.String("kms", c.Name)), openedSeeds: lru.New(cachedSeeds),
		failed: errors.New("not checked yet"),
	}
	go func() {
		defer connection.Close()
		k.run(ctx)
	}()
	return k, nil
}

// run keeps asking the service for its current key, until ctx ends.
func (k *kms) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := statusInterval
		if err := k.refresh(ctx); err != nil && ctx.Err() == nil {
			wait = retryInterval
			k.logger.Warn("the key management service does not answer", zap.Error(err))
		}
		_ = backoff.Sleep(ctx, k.clock, wait)
	}
}

// refresh asks the service for its current key, and makes a new seed if that
// has changed.
func (k *kms) refresh(ctx context.Context) error {
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	return k.query(ctx)
}

// query is refresh for a caller that holds refreshing.
func (k *kms) query(ctx context.Context) error {
	err := k.queryStatus(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed, k.failedAt = err, k.clock.Now()
	return err
}

func (k *kms) queryStatus(ctx context.Context) error {
	until := k.clock.Now().Add(seedLifetime) // however long the answers take
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	status, err := k.client.Status(ctx, &kmsv2.StatusRequest{})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	named := k.metrics.checkNamed(k.name, status.KeyId, k.clock.Now())
	switch {
	case status.Healthz != "ok":
		return fmt.Errorf("status: it reports %.100q", status.Healthz)
	case status.Version != "v2" && status.Version != "v2beta1":
		return fmt.Errorf("status: it speaks version %.20q, v2 is needed", status.Version)
	case named != nil:
		return fmt.Errorf("status: %w", named)
	}
	k.mu.RLock()
	next := k.current
	k.mu.RUnlock()
	if next == nil || next.keyID != status.KeyId {
		if next, err = k.newSeed(ctx, status.KeyId); err != nil {
			return err
		}
		// When the key changes, what was sealed by this one must not need the service.
		k.remember(next.digest(), next.sealer)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.until = next, until
	return nil
}

// newSeed makes a seed and has it sealed with the key that the service's status names. If
// it uses another one, its key is about to change.
func (k *kms) newSeed(ctx context.Context, keyID string) (*seed, error) {
	secret := make([]byte, seedSize)
	_, _ = rand.Read(secret) // never fails
	answer, err := k.client.Encrypt(ctx, &kmsv2.EncryptRequest{Uid: uuid.NewString(), Plaintext: secret})
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	s := &seed{
		keyID: answer.KeyId, sealed: answer.Ciphertext, annotations: answer.Annotations,
		source: sourceSeed, sealer: derivedKeySealer(secret),
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	if s.keyID != keyID {
		return nil, errors.New("encrypt: it seals with another key than its status names")
	}
	for name := range s.annotations { // upstream would not read what is stored with others
		if errs := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), name); len(errs) > 0 {
			return nil, fmt.Errorf("encrypt: %w", errs.ToAggregate())
		}
	}
	return s, nil
}

// check bounds the service's answer, which is stored with every value.
func (s *seed) check() error {
	size := 0
	for name, value := range s.annotations {
		size += len(name) + len(value)
	}
	switch {
	case s.keyID == "" || len(s.keyID) > maxKeyID:
		return errors.New("the key id is missing or too long")
	case len(s.sealed) == 0 || len(s.sealed) > maxSealedSeed:
		return errors.New("the sealed seed is missing or too long")
	case size > maxAnnotations:
		return errors.New("the annotations are too long")
	}
	return nil
}

func (k *kms) check(context.Context) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.failed == nil && k.clock.Now().After(k.until) {
		return errors.New("the service has not answered for too long")
	}
	return k.failed
}

// currentSeed returns the seed to seal with. A caller that comes before the first
// answer asks the service itself.
func (k *kms) currentSeed(ctx context.Context) (*seed, error) {
	if s, err := k.cachedSeed(); s != nil || err != nil {
		return s, err
	}
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	if s, err := k.cachedSeed(); s != nil || err != nil {
		return s, err // another caller has asked meanwhile
	}
	if err := k.query(context.WithoutCancel(ctx)); err != nil { // others wait for this answer, too
		return nil, err
	}
	if s, err := k.cachedSeed(); s != nil || err != nil {
		return s, err
	}
	return nil, errors.New("the service took longer to answer than its answer is valid")
}

// cachedSeed returns the seed to seal with, or why there is none; neither if it is
// time to ask.
func (k *kms) cachedSeed() (*seed, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	now := k.clock.Now()
	switch {
	case k.current != nil && now.Before(k.until):
		return k.current, nil
	case k.failed != nil && now.Before(k.failedAt.Add(minQueryInterval)):
		return nil, k.failed
	}
	return nil, nil
}

func (k *kms) seal(ctx context.Context, place, plain []byte) ([]byte, error) {
	s, err := k.currentSeed(ctx)
	if err != nil {
		return nil, err
	}
	sealed, err := s.sealer.seal(ctx, place, plain)
	if err != nil {
		return nil, err
	}
	k.metrics.keyHasBeenUsed(toStorage, k.name, s.keyID, k.clock.Now())
	return s.envelope(sealed), nil
}

func (k *kms) open(ctx context.Context, place, stored []byte) ([]byte, bool, error) {
	s, sealed, err := parseEnvelope(stored)
	if err != nil {
		return nil, false, err
	}
	k.mu.RLock()
	current := k.current
	k.mu.RUnlock()
	if err := k.unseal(ctx, s, current); err != nil {
		return nil, false, err
	}
	k.metrics.keyHasBeenUsed(fromStorage, k.name, s.keyID, k.clock.Now())
	plain, _, err := s.sealer.open(ctx, place, sealed)
	stale := current != nil && (current.keyID != s.keyID || s.source != sourceSeed)
	return plain, stale, err
}

// unseal returns the sealer of a stored seed: the current one, a remembered
// one, or one that the service opens.
func (k *kms) unseal(ctx context.Context, s, current *seed) error {
	if current != nil && current.source == s.source && current.keyID == s.keyID && bytes.Equal(current.sealed, s.sealed) {
		s.sealer = current.sealer
		return nil
	}
	id := s.digest()
	if found, ok := k.openedSeeds.Get(id); ok {
		s.sealer = found.(sealer)
		return nil
	}
	k.metrics.misses.Inc()
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	answer, err := k.client.Decrypt(ctx, &kmsv2.DecryptRequest{
		Uid: uuid.NewString(), Ciphertext: s.sealed, KeyId: s.keyID, Annotations: s.annotations,
	})
	if err != nil {
		return fmt.Errorf("decrypt: %w", err)
	}
	if s.sealer, err = s.sealerOf(answer.Plaintext); err != nil {
		return err
	}
	k.remember(id, s.sealer)
	return nil
}

func (k *kms) remember(id [sha256.Size]byte, opened sealer) {
	k.openedSeeds.Add(id, opened)
	k.metrics.seeds.WithLabelValues(k.name).Set(float64(k.openedSeeds.Len()))
}

// digest identifies a stored seed.
func (s *seed) digest() [sha256.Size]byte {
	h := sha256.New()
	write := func(b []byte) { fmt.Fprintf(h, "%d:", len(b)); h.Write(b) }
	write([]byte{byte(s.source)})
	write([]byte(s.keyID))
	write(s.sealed)
	for _, name := range slices.Sorted(maps.Keys(s.annotations)) {
		write([]byte(name))
		write(s.annotations[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
