package node

import (
	"context"
	"errors"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

type known []informer.Pod

func (p known) Get(namespace, name string) (informer.Pod, bool) {
	for _, pod := range p {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return informer.Pod{}, false
}

func (p known) ByIndex(node string) (out []informer.Pod) {
	for _, pod := range p {
		if pod.Node == node {
			out = append(out, pod)
		}
	}
	return out
}

// stored has an object of each kind for n1 and one for n2. The volume disk
// belongs to the claim shop/disk; disk2 does not belong to the claim shop/lie,
// though the claim says so.
func stored(_ context.Context, r core.Resource, _, name string) (core.Object, error) {
	volume := func(claim, secret string) core.Object {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				NodePublishSecretRef:       &corev1.SecretReference{Namespace: "ops", Name: secret},
				NodeStageSecretRef:         &corev1.SecretReference{Namespace: "ops", Name: secret + "-stage"},
				NodeExpandSecretRef:        &corev1.SecretReference{Namespace: "ops", Name: secret + "-grow"},
				ControllerPublishSecretRef: &corev1.SecretReference{Namespace: "ops", Name: secret + "-attach"},
				ControllerExpandSecretRef:  &corev1.SecretReference{Namespace: "ops", Name: secret + "-grow-all"},
			}},
		}}
	}
	switch r.Name + "/" + name {
	case "persistentvolumes/disk":
		return volume("disk", "csi"), nil
	case "persistentvolumes/disk2":
		return volume("of-others", "csi2"), nil
	case "persistentvolumeclaims/disk":
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk"}}, nil
	case "persistentvolumeclaims/lie":
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk2"}}, nil
	}
	switch r.Name {
	case "volumeattachments":
		return &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: name}}, nil
	case "resourceslices":
		return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: &name}}, nil
	case "podcertificaterequests":
		return &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{NodeName: types.NodeName(name)}}, nil
	}
	return nil, errors.New("not found")
}

func TestAuthorize(t *testing.T) {
	a := &Authorizer{Pods: known{
		{
			Namespace: "shop", Name: "web", Node: "n1", ServiceAccount: "web", Secrets: []string{"key"}, ConfigMaps: []string{"conf"},
			Claims: []string{"disk", "lie"}, ResourceClaims: []string{"gpu"},
		},
		{Namespace: "shop", Name: "db", Node: "n2", ServiceAccount: "db", Secrets: []string{"password"}},
	}, Stored: stored}
	kubelet := &request.User{Username: "system:node:n1", Groups: []string{"system:nodes", "system:authenticated"}}
	impostor := &request.User{Username: "system:node:n1", Groups: []string{"system:authenticated"}}
	ask := func(verb, namespace, resource, subresource, name string) request.Info {
		return request.Info{Resource: true, Verb: verb, Namespace: namespace, ResourceName: resource, Subresource: subresource, Name: name}
	}
	selecting := func(i request.Info, selector string) request.Info {
		i.Fields = fields.ParseSelectorOrDie(selector)
		return i
	}
	in := func(group string, i request.Info) request.Info {
		i.APIGroup = group
		return i
	}
	lease := func(verb, namespace, name string) request.Info {
		i := ask(verb, namespace, "leases", "", name)
		i.APIGroup = "coordination.k8s.io"
		return i
	}
	tests := []struct {
		name string
		user *request.User
		info request.Info
		want bool
	}{
		{"own node", kubelet, ask("get", "", "nodes", "", "n1"), true},
		{"own node's status", kubelet, ask("patch", "", "nodes", "status", "n1"), true},
		{"register", kubelet, ask("create", "", "nodes", "", ""), true},
		{"another node", kubelet, ask("get", "", "nodes", "", "n2"), false},
		{"another node's status", kubelet, ask("patch", "", "nodes", "status", "n2"), false},
		{"all nodes", kubelet, ask("list", "", "nodes", "", ""), false},
		{"delete itself", kubelet, ask("delete", "", "nodes", "", "n1"), false},
		{"own pods", kubelet, selecting(ask("watch", "", "pods", "", ""), "spec.nodeName=n1"), true},
		{"another's pods", kubelet, selecting(ask("watch", "", "pods", "", ""), "spec.nodeName=n2"), false},
		{"all pods", kubelet, ask("list", "", "pods", "", ""), false},
		{"pods of one name everywhere", kubelet, selecting(ask("list", "", "pods", "", "db"), "metadata.name=db"), false},
		{"a name yet to come", kubelet, selecting(ask("watch", "shop", "pods", "", "new"), "metadata.name=new"), false},
		{"own pod", kubelet, ask("get", "shop", "pods", "", "web"), true},
		{"own pod's status", kubelet, ask("patch", "shop", "pods", "status", "web"), true},
		{"another's pod", kubelet, ask("get", "shop", "pods", "", "db"), false},
		{"another's pod's status", kubelet, ask("patch", "shop", "pods", "status", "db"), false},
		{"a pod that is not known", kubelet, ask("get", "shop", "pods", "", "new"), false},
		{"status of a pod that is gone", kubelet, ask("patch", "shop", "pods", "status", "gone"), true},
		{"end a pod that is gone", kubelet, ask("delete", "shop", "pods", "", "gone"), true},
		{"end a pod of its own", kubelet, ask("delete", "shop", "pods", "", "web"), true},
		{"end another's pod", kubelet, ask("delete", "shop", "pods", "", "db"), false},
		{"bind a pod", kubelet, ask("create", "shop", "pods", "binding", "web"), false},
		{"secret of its pod", kubelet, ask("get", "shop", "secrets", "", "key"), true},
		{"secret of another's pod", kubelet, ask("get", "shop", "secrets", "", "password"), false},
		{"secret of that name elsewhere", kubelet, ask("get", "ops", "secrets", "", "key"), false},
		{"all secrets", kubelet, ask("list", "shop", "secrets", "", ""), false},
		{"write the secret", kubelet, ask("update", "shop", "secrets", "", "key"), false},
		{"config map of its pod", kubelet, ask("watch", "shop", "configmaps", "", "conf"), true},
		{"token for its pod", kubelet, ask("create", "shop", "serviceaccounts", "token", "web"), true},
		{"token for another's pod", kubelet, ask("create", "shop", "serviceaccounts", "token", "db"), false},
		{"own lease", kubelet, lease("update", "kube-node-lease", "n1"), true},
		{"another's lease", kubelet, lease("update", "kube-node-lease", "n2"), false},
		{"a lease elsewhere", kubelet, lease("update", "kube-system", "n1"), false},
		{"events", kubelet, ask("create", "shop", "events", "", ""), true},
		{"endpoints", kubelet, ask("get", "shop", "endpoints", "", "api"), true},
		{"all endpoints", kubelet, ask("list", "shop", "endpoints", "", ""), false},
		{"reviews in a namespace", kubelet, in("authorization.k8s.io", ask("create", "shop", "localsubjectaccessreviews", "", "")), true},
		{"trust bundles", kubelet, in("certificates.k8s.io", ask("watch", "", "clustertrustbundles", "", "")), true},
		{"claim of its pod", kubelet, ask("get", "shop", "persistentvolumeclaims", "", "disk"), true},
		{"claim that nobody names", kubelet, ask("get", "shop", "persistentvolumeclaims", "", "disk2"), false},
		{"how its pod's claim is", kubelet, ask("patch", "shop", "persistentvolumeclaims", "status", "disk"), true},
		{"volume of its pod's claim", kubelet, ask("get", "", "persistentvolumes", "", "disk"), true},
		{"volume of another's claim", kubelet, ask("get", "", "persistentvolumes", "", "disk2"), false},
		{"volume that is not there", kubelet, ask("get", "", "persistentvolumes", "", "disk3"), false},
		{"secret of its pod's volume", kubelet, ask("get", "ops", "secrets", "", "csi"), true},
		{"secret by which its pod's volume is staged", kubelet, ask("get", "ops", "secrets", "", "csi-stage"), true},
		{"secret by which its node grows the volume", kubelet, ask("get", "ops", "secrets", "", "csi-grow"), true},
		{"secret by which a controller attaches it", kubelet, ask("get", "ops", "secrets", "", "csi-attach"), false},
		{"secret by which a controller grows it", kubelet, ask("get", "ops", "secrets", "", "csi-grow-all"), false},
		{"secret of another's volume", kubelet, ask("get", "ops", "secrets", "", "csi2"), false},
		{"secret of its pod's volume, elsewhere", kubelet, ask("get", "shop", "secrets", "", "csi"), false},
		{"its attachment", kubelet, in("storage.k8s.io", ask("get", "", "volumeattachments", "", "n1")), true},
		{"another's attachment", kubelet, in("storage.k8s.io", ask("get", "", "volumeattachments", "", "n2")), false},
		{"devices that its pod has claimed", kubelet, in("resource.k8s.io", ask("get", "shop", "resourceclaims", "", "gpu")), true},
		{"devices that others have claimed", kubelet, in("resource.k8s.io", ask("get", "shop", "resourceclaims", "", "gpu2")), false},
		{"a slice of its own", kubelet, in("resource.k8s.io", ask("create", "", "resourceslices", "", "")), true},
		{"its slice", kubelet, in("resource.k8s.io", ask("delete", "", "resourceslices", "", "n1")), true},
		{"another's slice", kubelet, in("resource.k8s.io", ask("update", "", "resourceslices", "", "n2")), false},
		{"slices of all nodes", kubelet, in("resource.k8s.io", ask("deletecollection", "", "resourceslices", "", "")), false},
		{"its slices", kubelet, in("resource.k8s.io", selecting(ask("deletecollection", "", "resourceslices", "", ""), "spec.nodeName=n1")), true},
		{"request for its pod's certificate", kubelet, in("certificates.k8s.io", ask("create", "shop", "podcertificaterequests", "", "")), true},
		{"its request", kubelet, in("certificates.k8s.io", ask("get", "shop", "podcertificaterequests", "", "n1")), true},
		{"another's request", kubelet, in("certificates.k8s.io", ask("get", "shop", "podcertificaterequests", "", "n2")), false},
		{"its requests", kubelet, in("certificates.k8s.io", selecting(ask("watch", "", "podcertificaterequests", "", ""), "spec.nodeName=n1")), true},
		{"all requests", kubelet, in("certificates.k8s.io", ask("list", "", "podcertificaterequests", "", "")), false},
		{"answer its request", kubelet, in("certificates.k8s.io", ask("patch", "shop", "podcertificaterequests", "status", "n1")), false},
		{"delete its request", kubelet, in("certificates.k8s.io", ask("delete", "shop", "podcertificaterequests", "", "n1")), false},
		{"roles", kubelet, ask("list", "", "roles", "", ""), false},
		{"a path", kubelet, request.Info{Verb: "get", Path: "/metrics"}, false},
		{"a secret of the volume that its pod does not name", kubelet, ask("get", "ops", "secrets", "", ""), false},
		{"change a node without a name", kubelet, ask("patch", "", "nodes", "", ""), false},
		{"the group without a name", &request.User{Username: "system:node:", Groups: kubelet.Groups}, ask("get", "", "nodes", "", ""), false},
		{"the group, with another's name", &request.User{Username: "n1", Groups: kubelet.Groups}, ask("get", "", "nodes", "", "n1"), false},
		{"nobody", nil, ask("get", "", "nodes", "", "n1"), false},
		{"the name without the group", impostor, ask("get", "", "nodes", "", "n1"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			decision, reason, err := a.Authorize(t.Context(), &authz.Attributes{User: test.user, Info: test.info})
			if (decision == authz.Allow) != test.want || decision == authz.Deny || err != nil {
				t.Errorf("got %v (%s) %v", decision, reason, err)
			}
		})
	}
}

// TestCatchesUp: a kubelet may learn of its pod before the authorizer does.
func TestCatchesUp(t *testing.T) {
	calls := 0
	a := &Authorizer{Pods: known{}, Stored: stored}
	a.CatchUp = func(context.Context) {
		calls++
		a.Pods = known{{Namespace: "shop", Name: "web", Node: "n1", ServiceAccount: "web"}}
	}
	kubelet := &request.User{Username: "system:node:n1", Groups: []string{"system:nodes"}}
	at := &authz.Attributes{User: kubelet, Info: request.Info{
		Resource: true, Verb: "create", Namespace: "shop", ResourceName: "serviceaccounts", Subresource: "token", Name: "web",
	}}
	for range 2 { // the second time without waiting
		if decision, reason, err := a.Authorize(t.Context(), at); decision != authz.Allow || calls != 1 {
			t.Errorf("%v (%s) %v, after %d calls", decision, reason, err, calls)
		}
	}
}

// Who is no kubelet has no rules here; a kubelet's can't be listed, because they depend on pods.
func TestRulesFor(t *testing.T) {
	a := &Authorizer{Pods: known{}, Stored: stored}
	kubelet := &request.User{Username: "system:node:n1", Groups: []string{"system:nodes"}}
	if rules, err := a.RulesFor(t.Context(), kubelet, "shop"); err == nil || rules != nil {
		t.Errorf("a kubelet has the rules %v, %v", rules, err)
	}
	if rules, err := a.RulesFor(t.Context(), &request.User{Username: "jane"}, "shop"); err != nil || rules != nil {
		t.Errorf("a user has the rules %v, %v", rules, err)
	}
}

// A node reads the secrets of each kind of volume; those without a namespace are in the claim's.
func TestSecretsOfVolumes(t *testing.T) {
	ref := &corev1.SecretReference{Namespace: "ops", Name: "s"}
	bare := &corev1.SecretReference{Name: "s"}
	there, atClaim := []corev1.SecretReference{{Namespace: "ops", Name: "s"}}, []corev1.SecretReference{{Namespace: "shop", Name: "s"}}
	namespace := "ops"
	for name, c := range map[string]struct {
		source corev1.PersistentVolumeSource
		want   []corev1.SecretReference
	}{
		"azure file": {corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "s"}}, atClaim},
		"azure file, in a namespace": {corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{
			SecretName: "s", SecretNamespace: &namespace,
		}}, there},
		"cephfs":          {corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{SecretRef: ref}}, there},
		"cephfs, without": {corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{}}, nil},
		"cephfs, without a name": {corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{SecretRef: &corev1.SecretReference{Namespace: "ops"}}},
			nil},
		"cinder":  {corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{SecretRef: bare}}, atClaim},
		"flex":    {corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{SecretRef: ref}}, there},
		"rbd":     {corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{SecretRef: bare}}, atClaim},
		"scaleio": {corev1.PersistentVolumeSource{ScaleIO: &corev1.ScaleIOPersistentVolumeSource{SecretRef: ref}}, there},
		"iscsi":   {corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{SecretRef: ref}}, there},
		"storageos": {corev1.PersistentVolumeSource{StorageOS: &corev1.StorageOSPersistentVolumeSource{SecretRef: &corev1.ObjectReference{
			Namespace: "ops", Name: "s",
		}}}, there},
		"storageos, without": {corev1.PersistentVolumeSource{StorageOS: &corev1.StorageOSPersistentVolumeSource{}}, nil},
		"nfs":                {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}, nil},
	} {
		spec := &corev1.PersistentVolumeSpec{PersistentVolumeSource: c.source, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "claim"}}
		if got := secretsOfVolume(spec); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
