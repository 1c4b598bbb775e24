package resources_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// patch is a merge patch of an object or a subresource.
func (b *bed) patch(of registry.Resource, target registry.Target, text string) error {
	_, _, err := of.Update(b.t.Context(), target, func(current core.Object) (core.Object, error) {
		before, err := json.Marshal(current)
		if err != nil {
			return nil, err
		}
		after, err := jsonpatch.MergePatch(before, []byte(text))
		if err != nil {
			return nil, err
		}
		obj := reflect.New(reflect.TypeOf(current).Elem()).Interface().(core.Object)
		return obj, json.Unmarshal(after, obj)
	}, registry.Admission{}, &metav1.UpdateOptions{})
	return err
}

// TestStoredUnderLaxerRules: objects that today's rules refuse, and that an older server has
// stored, can be changed, scaled and told their status, and go when their last finalizer is
// removed. What they had wrong must stay as it was, and nothing may be added to it.
func TestStoredUnderLaxerRules(t *testing.T) {
	b := start(t)
	const (
		affinity = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` +
			`{"key":"k","operator":"In","values":["good","-bad-"]}]}]}}}`
		worse = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` +
			`{"key":"k","operator":"In","values":["-bad-","-bad-"]}]}]}}}`
		container = `"containers":[{"name":"c","image":"i","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]`
		labelled  = `{"metadata":{"labels":{"app":"a"}},"spec":{` + container + `,`
		template  = `"template":` + labelled + affinity + `}}`
		oneWorse  = `{"spec":{"template":{"spec":{` + worse + `}}}}`
		selector  = `"selector":{"matchLabels":{"app":"a"}},`
		once      = `{"spec":{` + container + `,"restartPolicy":"Never",` + affinity + `}}`
		mount     = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"none","mountPath":"/m"}]}]}}`
		topology  = `{"matchLabels":{"a":"-bad-"}}`
	)
	for resource, c := range map[string]struct {
		prefix, rest string // of the key, and of the object
		status       string // a patch of /status that is valid
		refused      string // a patch that is not
	}{
		"deployments":            {"deployments", `"spec":{` + selector + template + `}`, `{"status":{"replicas":2}}`, oneWorse},
		"daemonsets":             {"daemonsets", `"spec":{` + selector + template + `}`, `{"status":{"numberReady":2}}`, oneWorse},
		"replicasets":            {"replicasets", `"spec":{` + selector + template + `}`, `{"status":{"replicas":2}}`, oneWorse},
		"replicationcontrollers": {"controllers", `"spec":{"selector":{"app":"a"},` + template + `}`, `{"status":{"replicas":2}}`, oneWorse},
		"podtemplates":           {"podtemplates", template, "", `{"template":{"spec":{` + worse + `}}}`},
		"statefulsets": {"statefulsets", `"spec":{` + selector + `"serviceName":"s","template":` + mount + `}`, `{"status":{"replicas":2}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"other","mountPath":"/m"}]}]}}}}`},
		"jobs": {"jobs", `"spec":{"manualSelector":true,"suspend":true,` + selector + `"template":` +
			strings.Replace(once, "{", `{"metadata":{"labels":{"app":"a"}},`, 1) + `}`, `{"status":{"active":1}}`, oneWorse},
		"cronjobs": {"cronjobs", `"spec":{"schedule":"@daily","timeZone":"Mars/Base","jobTemplate":{"spec":{"template":` + once + `}}}`,
			`{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}`, `{"spec":{"timeZone":"Mars/Pole"}}`},
		"pods": {"pods", `"spec":{` + container + `,` + affinity + `}`, `{"status":{"phase":"Running"}}`,
			`{"spec":{` + strings.Replace(container, `"i"`, `""`, 1) + `}}`},
		"ingresses": {"ingress", `"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":1}}},"tls":[{"secretName":"Bad"},{"secretName":"ok"}]}`,
			`{"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`, `{"spec":{"tls":[{"secretName":"Bad"},{"secretName":"Bad"}]}}`},
		"networkpolicies": {"networkpolicies", `"spec":{"podSelector":{},"ingress":[{"from":[{"ipBlock":{"cidr":"010.0.0.0/8"}}]}]}`, "",
			`{"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"011.0.0.0/8"}}]}]}}`},
		"configmaps": {"configmaps", `"data":{"k":"` + strings.Repeat("v", 1<<20+1) + `"}`, "", `{"data":{"more":""}}`},
		"endpoints": {"services/endpoints", `"subsets":[{"addresses":[{"ip":"010.1.1.1"}],"ports":[{"port":1}]}]`, "",
			`{"subsets":[{"addresses":[{"ip":"010.1.1.2"}],"ports":[{"port":1}]}]}`},
		"endpointslices": {"endpointslices", `"addressType":"IPv6","endpoints":[{"addresses":["2001:DB8::1"]}]`, "",
			`{"endpoints":[{"addresses":["2001:DB8::2"]}]}`},
		"services": {"services/specs", `"spec":{"type":"ExternalName","externalName":"e.example","externalIPs":["010.1.1.1"]}`,
			`{"status":{"conditions":[]}}`, `{"spec":{"externalIPs":["010.1.1.2"]}}`},
		"horizontalpodautoscalers": {"horizontalpodautoscalers", `"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"K","name":"n","apiVersion":"a/b/c"}}`,
			`{"status":{"currentReplicas":2,"desiredReplicas":2}}`, `{"spec":{"scaleTargetRef":{"apiVersion":"a/b/d"}}}`},
		"poddisruptionbudgets": {"poddisruptionbudgets", `"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"-bad-"}}}`,
			`{"status":{"expectedPods":1}}`, `{"spec":{"selector":{"matchLabels":{"a":"-worse-"}}}}`},
		"clusterroles": {"clusterroles", `"rules":[],"aggregationRule":{"clusterRoleSelectors":[` + topology + `]}`, "",
			`{"aggregationRule":{"clusterRoleSelectors":[` + topology + `,` + topology + `]}}`},
		"csistoragecapacities": {"csistoragecapacities", `"storageClassName":"s","nodeTopology":` + topology, "", `{"capacity":"-1"}`},
		"persistentvolumeclaims": {"persistentvolumeclaims", `"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},` +
			`"dataSourceRef":{"apiGroup":"a..b","kind":"K","name":"n"}}`, `{"status":{"phase":"Bound"}}`, `{"spec":{"dataSourceRef":{"apiGroup":"a..c"}}}`},
	} {
		t.Run(resource, func(t *testing.T) {
			b := &bed{Set: b.Set, t: t, raw: b.raw, served: b.served}
			served := b.find(resource)
			info := served.Resource.Info()
			key, target := "/registry/"+c.prefix+"/default/a", registry.Target{Namespace: "default", Name: "a"}
			if !info.Namespaced {
				key, target.Namespace = "/registry/"+c.prefix+"/a", ""
			}
			stored := `{"apiVersion":"` + info.GVK().GroupVersion().String() + `","kind":"` + info.Kind + `","metadata":{"name":"a","namespace":"` + target.Namespace +
				`","uid":"u","creationTimestamp":"2020-01-01T00:00:00Z","finalizers":["example.com/f"]},` + c.rest + `}`
			if _, err := b.raw.Create(t.Context(), key, []byte(stored), 0); err != nil {
				t.Fatal(err)
			}
			e, err := served.Resource.Get(t.Context(), target.Namespace, target.Name, "")
			if err != nil {
				t.Fatal(err)
			}
			obj, err := served.Resource.Decode(e)
			if err != nil {
				t.Fatal(err)
			}
			obj.SetName("new")
			obj.SetResourceVersion("")
			obj.SetUID("")
			if _, err := served.Resource.Create(t.Context(), obj, registry.Admission{}, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
				t.Errorf("a new one: %v", err)
			}
			if err := b.patch(served.Resource, target, `{"metadata":{"labels":{"l":"v"}}}`); err != nil {
				t.Errorf("a label: %v", err)
			}
			if resource == "networkpolicies" {
				if err := b.patch(served.Resource, target, `{"spec":{"ingress":[{},{"from":[{"ipBlock":{"cidr":"010.0.0.0/8"}}]}]}}`); err != nil {
					t.Errorf("a rule before it: %v", err)
				}
			}
			if c.status != "" {
				of := target
				of.Subresource = "status"
				if err := b.patch(served.Resource, of, c.status); err != nil {
					t.Errorf("the status: %v", err)
				}
			}
			for _, sub := range served.Subresources {
				if sub.Name == "scale" {
					if err := b.patch(sub.Object, target, `{"spec":{"replicas":3}}`); err != nil {
						t.Errorf("scale: %v", err)
					}
				}
			}
			if err := b.patch(served.Resource, target, c.refused); !apierrors.IsInvalid(err) {
				t.Errorf("another error: %v", err)
			}
			if _, _, err := served.Resource.Delete(t.Context(), target.Namespace, target.Name, registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := b.patch(served.Resource, target, `{"metadata":{"finalizers":null}}`); err != nil {
				t.Errorf("the finalizer: %v", err)
			}
			if resource == "pods" { // which a kubelet has yet to end
				return
			}
			if _, err := served.Resource.Get(t.Context(), target.Namespace, target.Name, ""); !apierrors.IsNotFound(err) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// find is what is served of a resource with this plural name.
func (b *bed) find(name string) registry.Served {
	b.t.Helper()
	for _, served := range b.served {
		if served.Resource.Info().Name == name {
			return served
		}
	}
	b.t.Fatalf("%s are not served", name)
	return registry.Served{}
}
