package eventhandlers

import "testing"

// bound is a pod, as an API server sends it after its binding.
const bound = `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"backlog-1-1","namespace":"default","uid":"5a3fd7f2-3a52-4d0b-9a39-2e1d0d5e7a10","generation":1,"creationTimestamp":"2026-11-23T04:02:21Z",` +
	`"labels":{"app":"bench","release":"stable","tier":"web"},"annotations":{"example.org/owner":"team-a","example.org/note":"0123456789012345678901234567890123456789012345678901234567890123456789"},` +
	`"managedFields":[{"manager":"Go-http-client","operation":"Update","apiVersion":"v1","time":"2026-11-23T04:02:21Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.org/note":{},"f:example.org/owner":{}},` +
	`"f:labels":{".":{},"f:app":{},"f:release":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:command":{},"f:env":{".":{},"k:{\"name\":\"MODE\"}":{".":{},"f:name":{},"f:value":{}},` +
	`"k:{\"name\":\"POD_NAME\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},` +
	`"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},` +
	`"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/var/cache/web\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},` +
	`"f:volumes":{".":{},"k:{\"name\":\"cache\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}}]},` +
	`"spec":{"volumes":[{"name":"cache","emptyDir":{}},{"name":"kube-api-access-x8s2k","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},` +
	`{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"web","image":"registry.example.org/team-a/web:1.2.3","command":["/bin/web","--listen=:8080"],` +
	`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"MODE","value":"production"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}},` +
	`"volumeMounts":[{"name":"cache","mountPath":"/var/cache/web"},{"name":"kube-api-access-x8s2k","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"readinessProbe":{"httpGet":{"path":"/ready","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3},` +
	`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":10,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"node-00017","securityContext":{},` +
	`"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},` +
	`"status":{"observedGeneration":0,"phase":"Pending","conditions":[{"type":"PodScheduled","observedGeneration":1,"status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-23T04:02:22Z"}],"qosClass":"Burstable"}}`

func BenchmarkDecodePod(b *testing.B) {
	s := newShared()
	b.SetBytes(int64(len(bound)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodePod([]byte(bound), s); err != nil {
			b.Fatal(err)
		}
	}
}
