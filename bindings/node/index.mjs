// index.mjs - the same for ES modules.
import baton from './index.js';

export const { BatonError, Election, Lead, LostError, Store, constants, version, versionNumber } = baton;
export default baton;
