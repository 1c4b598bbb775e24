package housekeeping

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// tokenCleaner removes expired bootstrap tokens. Authentication refuses them
// anyway: this is for tidiness.
type tokenCleaner struct {
	tokens *informer.Informer[bootstrapToken]
	store  registry.Resource
	clock  clock.Clock
}

// bootstrapToken is what the loop knows of a token's secret.
type bootstrapToken struct {
	uid     types.UID
	until   time.Time
	limited bool
}

func bootstrapTokenOf(obj core.Object) bootstrapToken {
	// A token with an unreadable expiration counts as long expired.
	until, limited, _ := core.BootstrapTokenExpiry(obj.(*core.Secret))
	return bootstrapToken{obj.GetUID(), until, limited}
}

// secretsOf narrows an informer to the secrets of one type.
func secretsOf(kind corev1.SecretType) fields.Selector {
	return fields.OneTermEqualSelector("type", string(kind))
}

func newTokenCleaner(d *Dependencies) (Loop, error) {
	c := &tokenCleaner{clock: d.Clock}
	var err error
	options := informer.Options[bootstrapToken]{Fields: secretsOf(corev1.SecretTypeBootstrapToken)}
	if c.tokens, c.store, err = newInformerWith(d, core.Secrets, bootstrapTokenOf, options); err != nil {
		return nil, err
	}
	w := newWorker("token-cleaner-controller", d, several, c.sync)
	c.tokens.OnChange(func(key informer.Key, _, _ *bootstrapToken) {
		if key.Namespace == core.NamespaceSystem {
			w.add(key)
		}
	})
	return runTogether(c.tokens.Run, afterSync(w.run, c.tokens.Synced())), nil
}

func (c *tokenCleaner) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	token, ok := c.tokens.Get(key.Namespace, key.Name)
	if !ok || !token.limited {
		return 0, nil
	}
	if left := token.until.Sub(c.clock.Now()); left > 0 {
		return left, nil
	}
	_, _, err := c.store.Delete(ctx, key.Namespace, key.Name, registry.Admission{},
		&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &token.uid}})
	return 0, ignoreNotFound(err, "remove a bootstrap token that has run out")
}
