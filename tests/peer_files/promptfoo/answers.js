// A provider without a network: it knows two answers, and fails on everything else.
module.exports = class {
  id() { return 'clever'; }
  async callApi(prompt) {
    if (prompt.includes('France')) return { output: 'It is Paris.' };
    if (prompt.includes('2 + 2')) return { output: '4' };
    return { error: 'I cannot answer that.' };
  }
};
