package scheme

import "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

// ProtobufPrefix begins every object in protobuf.
const ProtobufPrefix = "k8s\x00"

// Protobuf encodes and decodes objects of every kind in protobuf.
var Protobuf = protobuf.NewSerializer(Scheme, Scheme)
