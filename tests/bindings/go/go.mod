// The driver program of the Go binding, which the scenarios of tests/bindings speak with.
module baton/tests/bindings/go

go 1.21

require baton/bindings/go v0.0.0

replace baton/bindings/go => ../../../bindings/go
