package housekeeping

import (
	"bytes"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// AccountTokens makes the tokens that are stored in secrets: a
// serviceaccount.Issuer.
type AccountTokens interface {
	Legacy(sa *core.ServiceAccount, secret string) (string, error)
}

// secretTokens fills secrets of type kubernetes.io/service-account-token that
// were created for a service account, and removes them when it is gone.
type secretTokens struct {
	secrets  *informer.Informer[accountSecret]
	uids     *informer.Informer[types.UID]
	store    registry.Resource
	accounts registry.Resource
	issuer   AccountTokens
	rootCA   []byte
}

// accountSecret is what the loop knows of a secret.
type accountSecret struct {
	key        informer.Key
	uid        types.UID
	account    informer.Key
	accountUID types.UID
	complete   bool
}

func (s *secretTokens) secretOf(obj core.Object) accountSecret {
	secret := obj.(*core.Secret)
	return accountSecret{
		key: informer.Key{Namespace: secret.Namespace, Name: secret.Name}, uid: secret.UID,
		account:    informer.Key{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]},
		accountUID: types.UID(secret.Annotations[corev1.ServiceAccountUIDKey]),
		complete:   s.isComplete(secret),
	}
}

func (s *secretTokens) isComplete(secret *core.Secret) bool {
	return secret.DeletionTimestamp != nil || len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 &&
		string(secret.Data[corev1.ServiceAccountNamespaceKey]) == secret.Namespace &&
		bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], s.rootCA)
}

func newSecretTokens(d *Dependencies) (Loop, error) {
	if d.AccountTokens == nil {
		return runTogether(), nil
	}
	s := &secretTokens{issuer: d.AccountTokens, rootCA: d.RootCA}
	var err error
	options := informer.Options[accountSecret]{
		Fields: secretsOf(corev1.SecretTypeServiceAccountToken),
		Index:  func(a accountSecret) string { return a.account.String() },
	}
	if s.secrets, s.store, err = newInformerWith(d, core.Secrets, s.secretOf, options); err != nil {
		return nil, err
	}
	uid := func(obj core.Object) types.UID { return obj.GetUID() }
	if s.uids, s.accounts, err = newInformer(d, core.ServiceAccounts, uid); err != nil {
		return nil, err
	}
	w := newWorker("serviceaccount-token-controller", d, several, s.sync)
	s.secrets.OnChange(func(key informer.Key, _, _ *accountSecret) { w.add(key) })
	s.uids.OnChange(func(key informer.Key, _, _ *types.UID) {
		for _, secret := range s.secrets.ByIndex(key.String()) {
			w.add(secret.key)
		}
	})
	return runTogether(s.secrets.Run, s.uids.Run, afterSync(w.run, s.secrets.Synced(), s.uids.Synced())), nil
}

func (s *secretTokens) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	secret, ok := s.secrets.Get(key.Namespace, key.Name)
	if !ok {
		return 0, nil
	}
	uid, ok := s.uids.Get(secret.account.Namespace, secret.account.Name)
	if ok && (secret.accountUID == "" || secret.accountUID == uid) {
		if secret.complete && secret.accountUID == uid {
			return 0, nil
		}
		return 0, s.completeSecret(ctx, secret)
	}
	// The account may be newer than the informer of accounts.
	account, err := registry.GetStored[*core.ServiceAccount](ctx, s.accounts, secret.account.Namespace, secret.account.Name)
	switch {
	case err == nil && (secret.accountUID == "" || secret.accountUID == account.UID):
		return 0, s.completeSecret(ctx, secret)
	case err != nil && !apierrors.IsNotFound(err):
		return 0, err
	}
	_, _, err = s.store.Delete(ctx, key.Namespace, key.Name, registry.Admission{},
		&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.uid}})
	return 0, ignoreNotFound(err, "remove the token of a service account that is gone")
}

// completeSecret adds what is missing. An existing token stays.
func (s *secretTokens) completeSecret(ctx context.Context, known accountSecret) error {
	account, err := registry.GetStored[*core.ServiceAccount](ctx, s.accounts, known.account.Namespace, known.account.Name)
	if err != nil {
		return ignoreNotFound(err, "read the service account of a token")
	}
	err = modify(ctx, s.store, registry.Target{Namespace: known.key.Namespace, Name: known.key.Name},
		func(current core.Object) (core.Object, error) {
			secret, ok := current.(*core.Secret)
			if !ok || secret.UID != known.uid {
				return nil, apierrors.NewNotFound(core.Secrets.GVR().GroupResource(), known.key.Name)
			}
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
				token, err := s.issuer.Legacy(account, secret.Name)
				if err != nil {
					return nil, err
				}
				secret.Data[corev1.ServiceAccountTokenKey] = []byte(token)
			}
			secret.Data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
			if len(s.rootCA) > 0 {
				secret.Data[corev1.ServiceAccountRootCAKey] = s.rootCA
			}
			secret.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
			return secret, nil
		})
	return ignoreNotFound(err, "write a service account's token")
}
