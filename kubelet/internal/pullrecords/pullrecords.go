package pullrecords

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/credential"
)

// mostNoted bounds the secrets that are recorded for an image besides those that
// pulled it: those that turned out to be equivalent.
const mostNoted = 100

// Records says who may use which images. It is safe for concurrent use.
type Records struct {
	policy Policy
	files  files
	clock  clock.PassiveClock
	logger *zap.Logger

	mu    sync.Mutex     // of the files, too
	begun map[string]int // pulls under way, by image
	known map[string]known

	// Checked, if not nil, is called with each answer of MayUse. It is set before the
	// first call.
	Checked func(Check)
}

// Check is why a pod may use a present image, or why not, in the words of upstream's metric.
type Check string

const (
	// ByPolicy lets the pod have the image, because nobody's credentials are verified for it.
	ByPolicy Check = "credentialPolicyAllowed"
	// ByRecord lets the pod have the image, because its credentials, or none, pulled it.
	ByRecord Check = "credentialRecordFound"
	// MustPull makes the pod pull the image with its own credentials.
	MustPull Check = "mustAuthenticate"
	// Unreadable makes the pod pull the image, because it can't be read who may have it.
	Unreadable Check = "error"
)

// known is a record as it was read from a file: each start of a container asks for
// one. It is replaced, never changed.
type known struct {
	file   fs.FileInfo
	record *kubeletv1beta1.ImagePulledRecord
}

// New returns the Records below the kubelet's directory. List lists the images on
// the node: one that an earlier kubelet was still pulling, and that is present,
// counts as pulled without known credentials.
func New(rootDir string, policy Policy, list func() ([]*runtimeapi.Image, error), clock clock.PassiveClock,
	logger *zap.Logger) (*Records, error) {
	r := &Records{policy: policy, files: files{rootDir}, clock: clock, logger: logger, begun: map[string]int{}, known: map[string]known{}}
	if err := r.files.make(); err != nil {
		return nil, err
	}
	intents, err := r.files.intents()
	if err != nil || len(intents) == 0 {
		return r, err
	}
	images, err := list()
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	for _, image := range images {
		for _, name := range slices.Concat(image.GetRepoTags(), image.GetRepoDigests()) {
			for _, intent := range intents {
				if intent != name && normal(intent) != name {
					continue
				}
				if err := r.note(intent, image.GetId(), nil); err != nil {
					return nil, err
				}
				if err := r.files.dropIntent(intent); err != nil {
					return nil, err
				}
			}
		}
	}
	return r, nil
}

// normal is an image's name as runtimes have it.
func normal(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	return reference.TagNameOnly(named).String()
}

// RecordIntent notes that an image is about to be pulled; see image.Access.
func (r *Records) RecordIntent(image string) (end func(id string, by *credential.Credential), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.files.writeIntent(image); err != nil {
		return nil, err
	}
	r.begun[image]++
	return func(id string, by *credential.Credential) { r.recordEnd(image, id, by) }, nil
}

func (r *Records) recordEnd(image, id string, by *credential.Credential) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id != "" {
		if by == nil {
			by = &credential.Credential{}
		}
		if err := r.note(image, id, by); err != nil { // the intent stays, which records it all the same
			r.logger.Error("could not record who may use an image: pods that use it have to pull it", zap.String("image", image), zap.Error(err))
			return
		}
	}
	if r.begun[image]--; r.begun[image] > 0 {
		return
	}
	delete(r.begun, image)
	if err := r.files.dropIntent(image); err != nil {
		r.logger.Error("the note of a pull stays", zap.String("image", image), zap.Error(err))
	}
}

// MayUse says whether a pod with the passes may use a present image.
func (r *Records) MayUse(image, id string, passes func() []credential.Credential) bool {
	check := r.check(image, id, passes)
	if r.Checked != nil {
		r.Checked(check)
	}
	return check == ByPolicy || check == ByRecord
}

func (r *Records) check(image, id string, passes func() []credential.Credential) Check {
	if r.policy.Verify == kubeletv1beta1.NeverVerify {
		return ByPolicy
	}
	r.mu.Lock()
	record, err := r.record(id)
	byKubelet := record != nil || r.begun[image] > 0 || r.files.hasIntent(image)
	r.mu.Unlock()
	if err != nil {
		r.logger.Error("can't read who may use an image: pods that use it have to pull it", zap.String("image", image), zap.Error(err))
		return Unreadable
	}
	if !r.policy.verifies(image, byKubelet) {
		return ByPolicy
	}
	name, err := bareName(image)
	switch {
	case record == nil:
		return MustPull
	case err != nil:
		return Unreadable
	}
	noted, known := record.CredentialMapping[name]
	switch {
	case !known:
		return MustPull
	case noted.NodePodsAccessible:
		return ByRecord
	case len(noted.KubernetesSecrets)+len(noted.KubernetesServiceAccounts) == 0:
		return MustPull
	}
	for _, pass := range passes() { // which may take a while
		if isGood(noted, pass) {
			r.learn(image, id, noted, pass)
			return ByRecord
		}
	}
	return MustPull
}

// Count says how many pulls have been begun and how many images are recorded.
func (r *Records) Count() (intents, records int, err error) {
	intents, failed := r.files.count(pulling)
	records, err = r.files.count(done)
	return intents, records, errors.Join(failed, err)
}

// isGood tells whether a pass is one of those that pulled an image: the same secret,
// even if its content was renewed, or another one with the same content.
func isGood(noted kubeletv1beta1.ImagePullCredentials, pass credential.Credential) bool {
	if a := pass.Account; a != nil {
		return slices.Contains(noted.KubernetesServiceAccounts, kubeletv1beta1.ImagePullServiceAccount{
			UID: a.UID, Namespace: a.Namespace, Name: a.Name,
		})
	}
	if pass.Secret == nil {
		return false
	}
	hash := pass.Hash()
	return slices.ContainsFunc(noted.KubernetesSecrets, func(s kubeletv1beta1.ImagePullSecret) bool {
		return s.CredentialHash == hash && hash != "" || sameSecret(s, *pass.Secret)
	})
}

// learn records an equivalent pass, for when the original one has changed.
func (r *Records) learn(image, id string, noted kubeletv1beta1.ImagePullCredentials, pass credential.Credential) {
	if pass.Secret == nil || len(noted.KubernetesSecrets) >= mostNoted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.note(image, id, &pass); err != nil {
		r.logger.Warn("that a pod may have an image is not noted", zap.String("image", image), zap.Error(err))
	}
}

// note adds a pass to an image's record; with nil it only makes the record.
func (r *Records) note(image, id string, pass *credential.Credential) error {
	name, err := bareName(image)
	if err != nil {
		return err
	}
	before, err := r.record(id)
	if err != nil {
		r.logger.Warn("recreating an image's pull record", zap.String("image", image), zap.Error(err))
	}
	record, changed := before.DeepCopy(), before == nil
	if changed {
		record = &kubeletv1beta1.ImagePulledRecord{ImageRef: id}
	}
	if pass != nil {
		noted := record.CredentialMapping[name]
		if add(&noted, *pass) {
			if record.CredentialMapping == nil {
				record.CredentialMapping = map[string]kubeletv1beta1.ImagePullCredentials{}
			}
			record.CredentialMapping[name], changed = noted, true
		}
	}
	if !changed {
		return nil
	}
	record.LastUpdatedTime.Time = r.clock.Now()
	return r.files.writeRecord(record)
}

// record is an image's record; nil if there is none.
func (r *Records) record(id string) (*kubeletv1beta1.ImagePulledRecord, error) {
	file, err := os.Stat(r.files.path(done, id))
	if errors.Is(err, fs.ErrNotExist) {
		delete(r.known, id)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of an image: %w", err)
	}
	if last, ok := r.known[id]; ok && os.SameFile(last.file, file) && last.file.ModTime().Equal(file.ModTime()) &&
		last.file.Size() == file.Size() {
		return last.record, nil
	}
	delete(r.known, id)
	record, err := r.files.record(id)
	if record != nil {
		r.known[id] = known{file, record}
	}
	return record, err
}

// add says whether there was anything to add.
func add(noted *kubeletv1beta1.ImagePullCredentials, pass credential.Credential) bool {
	switch s, a := pass.Secret, pass.Account; {
	case noted.NodePodsAccessible:
		return false
	case s != nil:
		entry := kubeletv1beta1.ImagePullSecret{UID: s.UID, Namespace: s.Namespace, Name: s.Name, CredentialHash: pass.Hash()}
		at := slices.IndexFunc(noted.KubernetesSecrets, func(other kubeletv1beta1.ImagePullSecret) bool { return sameSecret(other, *s) })
		if at < 0 {
			noted.KubernetesSecrets = append(noted.KubernetesSecrets, entry)
			return true
		}
		changed := noted.KubernetesSecrets[at] != entry
		noted.KubernetesSecrets[at] = entry
		return changed
	case a != nil:
		entry := kubeletv1beta1.ImagePullServiceAccount{UID: a.UID, Namespace: a.Namespace, Name: a.Name}
		if slices.Contains(noted.KubernetesServiceAccounts, entry) {
			return false
		}
		noted.KubernetesServiceAccounts = append(noted.KubernetesServiceAccounts, entry)
		return true
	}
	*noted = kubeletv1beta1.ImagePullCredentials{NodePodsAccessible: true}
	return true
}

func sameSecret(s kubeletv1beta1.ImagePullSecret, o credential.Owner) bool {
	return s.UID == o.UID && s.Namespace == o.Namespace && s.Name == o.Name
}

// Prune forgets images that are no longer on the node, given the list at a time.
func (r *Records) Prune(ids []string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	records, err := r.files.records()
	if err != nil {
		r.logger.Warn("records of images that are gone stay", zap.Error(err))
	}
	for _, record := range records {
		if slices.Contains(ids, record.ImageRef) || !record.LastUpdatedTime.Time.Before(at) {
			continue
		}
		delete(r.known, record.ImageRef)
		if err := r.files.dropRecord(record.ImageRef); err != nil {
			r.logger.Warn("could not delete the pull record of a removed image", zap.String("image", record.ImageRef), zap.Error(err))
		}
	}
}
